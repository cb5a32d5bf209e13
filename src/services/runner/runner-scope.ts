import type { Caller } from "../../domain/identity/caller.ts";
import type { Grant } from "../../domain/identity/permissions.ts";

/** An id that no runner has: a filter with only this id matches nothing. */
const NO_RUNNER = "";

/**
 * Returns the ids of the runners that a list may contain, as a filter: the requested ones, or for a runner only
 * itself.
 *
 * @param requested empty for any runner
 */
export function runnersInScope(
  { subject }: Caller,
  grant: Grant,
  requested: readonly string[],
): readonly string[] {
  if (grant === "any") return requested;
  return [requested.length === 0 || requested.includes(subject.id) ? subject.id : NO_RUNNER];
}

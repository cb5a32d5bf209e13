import type { Caller } from "../../domain/identity/caller.ts";
import type { Grant } from "../../domain/identity/permissions.ts";

/** An id that no runner has: a filter of nothing else matches nothing. */
const NO_RUNNER = "";

/**
 * The runners that a list may tell of, as a filter: those that were asked for,
 * for a runner only itself.
 *
 * @param asked empty for any
 */
export function runnersInScope(
  { subject }: Caller,
  grant: Grant,
  asked: readonly string[],
): readonly string[] {
  if (grant === "any") return asked;
  return [asked.length === 0 || asked.includes(subject.id) ? subject.id : NO_RUNNER];
}

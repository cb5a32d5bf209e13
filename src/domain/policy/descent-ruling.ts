import { ToolKind } from "#gen/service/v1/approval_pb.js";
import {
  type ApprovalRuling,
  ApprovalEffect as Effect,
  RunOrigin as Origin,
  rulingOn,
  type ToolUse,
} from "./approval-policy.ts";
import type { Policies } from "./policies.ts";

/**
 * Returns the ruling on a tool call in a run that descends from several starts: the strictest ruling over all origins,
 * because a run that continues another must not bypass an approval that the other would need. Questions go to people if
 * any of the origins is a person.
 *
 * @param origins not empty
 */
export function rulingOnDescent(
  policies: Policies,
  asked: Omit<ToolUse, "origin">,
  origins: readonly Origin[],
): ApprovalRuling {
  const isForPerson = asked.kind === ToolKind.QUESTION && origins.includes(Origin.PERSON);
  const [first, ...rest] = (isForPerson ? [Origin.PERSON] : origins).map((origin) =>
    rulingOn(policies, { ...asked, origin }),
  );
  if (!first) throw new Error("an agent run descends from no start");
  return rest.reduce((one, other) => (strictness(other) > strictness(one) ? other : one), first);
}

function strictness({ effect, deciders }: ApprovalRuling): number {
  if (effect === Effect.DENY) return 3;
  if (effect !== Effect.ASK) return 0;
  // Deciders that the policy names are stricter than the default, those who may send to the run.
  return deciders ? 2 : 1;
}

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
 * Returns what the policy says of a tool call in a run that descends from several starts: the strictest of what it says
 * of each, since a run that goes on with another may not do what that would have to ask for. Questions are put to people
 * as soon as one of them has a hand in the run.
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
  // Others than those who may send to the run are harder to persuade.
  return deciders ? 2 : 1;
}

import type {
  PermissionOption,
  PermissionOptionKind,
  RequestPermissionOutcome,
} from "@agentclientprotocol/sdk";
import { AgentOutputBlock_ToolCall_Kind as ToolKind } from "#gen/service/v1/agent_pb.js";
import type { ToolCall } from "../agent-block.ts";

/** A tool call that an agent asks for. */
export interface PermissionRequest {
  /** The call, with all that the agent has told of it. */
  readonly call: ToolCall;
  readonly options: readonly PermissionOption[];
  /** Aborted when the agent asks no longer. */
  readonly signal: AbortSignal;
}

/** An answer to an agent. */
export interface PermissionAnswer {
  readonly outcome: RequestPermissionOutcome;
  /** Why it was refused, for people; undefined where it was not. */
  readonly refusal?: string;
}

/** Decides what an agent may do. */
export type DecidePermission = (request: PermissionRequest) => Promise<PermissionAnswer>;

/** The kinds of calls that nobody needs to be asked for. */
const ALLOWED: ReadonlySet<ToolKind> = new Set([
  ToolKind.READ,
  ToolKind.EDIT,
  ToolKind.SEARCH,
  ToolKind.THINK,
]);

/** Decides without asking anybody: what would have to be asked for is refused. */
export const decideAlone: DecidePermission = async ({ call, options }) => {
  const kind = call.kind || ToolKind.OTHER;
  const allowed = ALLOWED.has(kind) && optionOf(options, ["allow_once"]);
  if (allowed) return { outcome: allowed };
  const name = ToolKind[kind].toLowerCase();
  return {
    outcome: optionOf(options, ["reject_once", "reject_always"]) ?? { outcome: "cancelled" },
    refusal: `the tool call ${call.title || call.id} was refused: approvals decide calls of the kind ${name}, and nobody can be asked for one here`,
  };
};

/** Returns the choice of the first option of the first kind that there is. */
function optionOf(
  options: readonly PermissionOption[],
  kinds: readonly PermissionOptionKind[],
): RequestPermissionOutcome | undefined {
  for (const kind of kinds) {
    const option = options.find((each) => each.kind === kind);
    if (option) return { outcome: "selected", optionId: option.optionId };
  }
  return undefined;
}

import { type Approval, ApprovalKind, ApprovalState, ToolKind } from "#gen/service/v1/approval_pb.js";
import type { Tone } from "../../parts/State.tsx";

const STATES: Readonly<Record<ApprovalState, readonly [Tone, string]>> = {
  [ApprovalState.UNSPECIFIED]: ["waiting", "Unknown"],
  [ApprovalState.PENDING]: ["asks", "Pending"],
  [ApprovalState.APPROVED]: ["done", "Approved"],
  [ApprovalState.DENIED]: ["failed", "Denied"],
  [ApprovalState.EXPIRED]: ["stopped", "Expired"],
  [ApprovalState.CANCELLED]: ["stopped", "Cancelled"],
};

/** Returns the tone and word of an approval's state. */
export const approvalState = (state: ApprovalState): readonly [Tone, string] =>
  STATES[state] ?? STATES[ApprovalState.UNSPECIFIED];

/** Labels of what is requested. */
export const KINDS: Readonly<Record<ApprovalKind, string>> = {
  [ApprovalKind.UNSPECIFIED]: "Unknown",
  [ApprovalKind.TOOL_CALL]: "Tool call",
  [ApprovalKind.QUESTION]: "Question",
  [ApprovalKind.STEP]: "Step of a workflow",
  [ApprovalKind.PUSH]: "Push",
};

/** Labels of what a tool does. */
export const TOOLS: Readonly<Record<ToolKind, string>> = {
  [ToolKind.UNSPECIFIED]: "Not reported",
  [ToolKind.READ]: "Reads",
  [ToolKind.EDIT]: "Changes files",
  [ToolKind.DELETE]: "Deletes",
  [ToolKind.MOVE]: "Moves files",
  [ToolKind.SEARCH]: "Searches",
  [ToolKind.EXECUTE]: "Runs a command",
  [ToolKind.FETCH]: "Fetches data from outside",
  [ToolKind.THINK]: "Thinks",
  [ToolKind.OTHER]: "Other",
  [ToolKind.QUESTION]: "Asks a person",
};

/** Returns the title of an approval in lists. */
export const approvalTitle = ({ title, kind }: Approval): string => title || KINDS[kind];

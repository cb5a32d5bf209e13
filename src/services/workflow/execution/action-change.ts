import type { WorkflowExecutionAction } from "#gen/service/v1/workflow_pb.js";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { createHook } from "../../call/hook.ts";

/** The hook that is called with an action after a change that may have ended a step of it, in the transaction. */
export const actionChanged =
  createHook<[tx: WriteTransaction, scope: Scope, action: WorkflowExecutionAction]>("changes of actions");

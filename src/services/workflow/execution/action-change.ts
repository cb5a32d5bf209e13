import type { WorkflowExecutionAction } from "#gen/service/v1/workflow_pb.js";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { createHook } from "../../call/hook.ts";

/** The hook for changes of an action that may have ended one of its steps. It runs in the same transaction. */
export const actionChanged =
  createHook<[tx: WriteTransaction, scope: Scope, action: WorkflowExecutionAction]>("changes of actions");

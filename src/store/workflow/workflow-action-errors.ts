import { type JsonValue, toJson } from "@bufbuild/protobuf";
import { type WorkflowError, WorkflowErrorSchema } from "#gen/service/v1/workflow_error_pb.js";
import type { WorkflowExecutionAction } from "#gen/service/v1/workflow_pb.js";
import {
  type ActionErrors,
  addedErrors,
  addsErrors,
} from "../../domain/workflow/execution/execution-conclusion.ts";
import { fromStoredJson } from "../json.ts";
import { prepared } from "../prepared.ts";
import type { WriteTransaction } from "../store.ts";
import type { WorkflowExecutionTable } from "./workflow-schema.ts";

type ErrorColumns = Pick<WorkflowExecutionTable, "action_failures" | "action_warnings">;

/** Returns the errors of its actions that an execution's row contains. */
export function actionErrorsOfRow({ action_failures, action_warnings }: ErrorColumns): ActionErrors {
  return { failures: errorsOf(action_failures), warnings: errorsOf(action_warnings) };
}

const selectErrors = prepared<{ id: string }, ErrorColumns>((db, { id }) =>
  db.selectFrom("workflow_execution").select(["action_failures", "action_warnings"]).where("id", "=", id),
);

const updateErrors = prepared<ErrorColumns & { id: string }, unknown>((db, row) =>
  db
    .updateTable("workflow_execution")
    .set({ action_failures: row.action_failures, action_warnings: row.action_warnings })
    .where("id", "=", row.id),
);

/** Adds the errors of a change of an action to the first errors in its execution's row. */
export async function addActionErrors(
  tx: WriteTransaction,
  executionId: string,
  before: WorkflowExecutionAction,
  after: WorkflowExecutionAction,
): Promise<void> {
  if (!addsErrors(before, after)) return;
  const [row] = await selectErrors(tx.db, { id: executionId });
  const errors = row && addedErrors(actionErrorsOfRow(row), before, after);
  if (!errors) return;
  await updateErrors(tx.db, {
    id: executionId,
    action_failures: textOf(errors.failures),
    action_warnings: textOf(errors.warnings),
  });
}

function errorsOf(text: string): WorkflowError[] {
  if (text === "[]") return [];
  return (JSON.parse(text) as JsonValue[]).map((each) => fromStoredJson(WorkflowErrorSchema, each));
}

function textOf(errors: readonly WorkflowError[]): string {
  return JSON.stringify(errors.map((error) => toJson(WorkflowErrorSchema, error)));
}

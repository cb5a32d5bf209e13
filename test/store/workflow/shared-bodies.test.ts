import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import {
  WorkflowExecutionActionPhase as ActionPhase,
  WorkflowExecutionAction_StatusSchema as ActionStatusSchema,
  WorkflowExecutionPhase as Phase,
  WorkflowExecutionActionSchema,
  WorkflowExecutionSchema,
} from "#gen/service/v1/workflow_pb.js";
import { fromBody, sharedFromBody, toBody } from "../../../src/store/json.ts";
import { actionBody, actionOfRow } from "../../../src/store/workflow/workflow-action-row.ts";
import { executionBody, executionOfRow } from "../../../src/store/workflow/workflow-execution-row.ts";

const bodyOf = (id: string) => toBody(WorkflowExecutionSchema, create(WorkflowExecutionSchema, { id }));

describe("a shared body", () => {
  test("is read like every other, and once", () => {
    const read = sharedFromBody(WorkflowExecutionSchema);
    expect(read(bodyOf("one"))).toEqual(fromBody(WorkflowExecutionSchema, bodyOf("one")));
    expect(read(bodyOf("one"))).toBe(read(bodyOf("one")));
    expect(read(bodyOf("two")).id).toBe("two");
  });

  test("makes room for later ones", () => {
    const read = sharedFromBody(WorkflowExecutionSchema);
    const first = read(bodyOf("first"));
    const mebibyte = "x".repeat(1024 * 1024);
    for (const name of ["a", "b", "c"]) read(bodyOf(name + mebibyte));
    expect(read(bodyOf("first"))).toBe(first);
    read(bodyOf(`d${mebibyte}`));
    expect(read(bodyOf("first"))).not.toBe(first);
    expect(read(bodyOf("first"))).toEqual(first);
  });
});

describe("what is read of a row", () => {
  const counts = { pending_count: 1, running_count: 0, failed_count: 0, done_count: 0, stopped_count: 0 };
  const errors = { action_failures: "[]", action_warnings: "[]", progress: "{}" };

  test("of an action can be changed without changing what is read next", () => {
    const fixed = create(WorkflowExecutionActionSchema, {
      metadata: { actionName: "r0" },
      spec: { context: { context: { case: "projectId", value: "p" } } },
    });
    const row = {
      ...{ id: "a", workflow_id: "w", execution_id: "e", is_report: 0, environment_id: null, attempt: 0 },
      ...{ phase: ActionPhase.PENDING, desired_phase: ActionPhase.DONE, session: "s", progress: "{}" },
      ...{ started_at: null, finished_at: null, body: actionBody(fixed) },
    };
    const [read, expected] = [actionOfRow(row), actionOfRow(row)];
    expect(read.metadata).toMatchObject({ actionName: "r0", workflowId: "w", workflowExecutionId: "e" });
    if (read.metadata) Object.assign(read.metadata, { actionName: "", workflowId: "", startedAt: {} });
    if (read.spec) Object.assign(read.spec, { session: "", desiredPhase: 0, context: undefined });
    Object.assign(read, { id: "", status: create(ActionStatusSchema) });
    expect(actionOfRow(row)).toEqual(expected);
  });

  test("of an execution that was made here is what others read of its text", () => {
    const fixed = create(WorkflowExecutionSchema, {
      id: "e",
      metadata: {
        workflowId: "w",
        creator: { id: "c" },
        startedAt: { seconds: 1n },
        finishedAt: { seconds: 2n },
      },
      spec: {
        session: "s",
        action: { limits: { maxTotal: 2 }, steps: [{ step: { case: undefined } }] },
        trigger: {},
      },
      status: { session: "s" },
    });
    const row = {
      ...{ id: "e", phase: Phase.RUNNING, desired_phase: Phase.COMPLETED, session: "s", finished_at: null },
      ...{ ...counts, ...errors, body: executionBody(fixed) },
    };
    // Another text, so that it is parsed.
    const read = executionOfRow({ ...row, body: ` ${row.body}` });
    expect(executionOfRow(row)).toEqual(read);
    expect(toBody(WorkflowExecutionSchema, executionOfRow(row))).toBe(toBody(WorkflowExecutionSchema, read));
  });

  test("of an execution can be changed without changing what is read next", () => {
    const fixed = create(WorkflowExecutionSchema, { id: "e", metadata: { workflowId: "w" }, spec: {} });
    const row = {
      ...{ id: "e", phase: Phase.RUNNING, desired_phase: Phase.COMPLETED, session: "s", finished_at: null },
      ...{ ...counts, ...errors, body: executionBody(fixed) },
    };
    const [read, expected] = [executionOfRow(row), executionOfRow(row)];
    expect(read.spec).toMatchObject({ session: "s", desiredPhase: Phase.COMPLETED });
    if (read.metadata) Object.assign(read.metadata, { workflowId: "", finishedAt: {} });
    if (read.spec) Object.assign(read.spec, { session: "", desiredPhase: 0 });
    Object.assign(read, { id: "", status: undefined });
    expect(executionOfRow(row)).toEqual(expected);
  });
});

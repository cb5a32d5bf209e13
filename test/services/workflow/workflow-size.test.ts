import { fromJson, type JsonObject } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { UpdateWorkflowRequestSchema } from "#gen/service/v1/workflow_service_pb.js";
import { WORKFLOW_BYTES, workflowBytes } from "../../../src/domain/workflow/workflow-size.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { updateWorkflow } from "../../../src/store/workflow/workflow.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import { action, task, type Workflows, workflowsOf } from "./running-workflow.ts";

let made: TestStore;
let workflows: Workflows;
let organizationId: string;
beforeEach(async () => {
  made = openTestStore();
  const caller = await made.createOrganization("harbour");
  organizationId = caller.organizationId;
  workflows = workflowsOf(made, caller);
});
afterEach(() => made.close());

const EXCEEDED = { reason: ErrorReason.SIZE_EXCEEDED };
const commands = (count: number, text = "\u{1F6A2}".repeat(20_000)): JsonObject[] =>
  Array.from({ length: count }, () => task(text));
const HALF = action(1, 100, ...commands(27));
const update = (workflowId: string, change: JsonObject) =>
  workflows.updateWorkflow(fromJson(UpdateWorkflowRequestSchema, { workflowId, ...change }));
const found = async (workflowId: string) => {
  const { workflow } = await workflows.getWorkflow({ workflowId });
  if (!workflow) throw new Error("no workflow");
  return workflow;
};

/** A workflow that an earlier release stored, when there was no limit; its id. */
async function storedLarger(): Promise<string> {
  const id = await workflows.make({ action: HALF });
  const before = await found(id);
  const after = { ...before, spec: before.spec && { ...before.spec, report: before.spec.action } };
  await made.store.write(SYSTEM, "test", (tx) =>
    updateWorkflow(tx, { organizationId }, before, after as never),
  );
  expect(workflowBytes(await found(id))).toBeGreaterThan(WORKFLOW_BYTES);
  return id;
}

describe("a workflow of more than 4 MiB", () => {
  test("is not created, and no update makes one", async () => {
    await expect(workflows.make({ action: HALF, report: HALF })).rejects.toMatchObject(EXCEEDED);
    const id = await workflows.make({ action: HALF });
    await expect(update(id, { report: HALF })).rejects.toMatchObject(EXCEEDED);
    expect((await found(id)).spec?.report).toBeUndefined();
  });

  test("that is stored is read, started, disabled and made smaller, but not larger", async () => {
    const id = await storedLarger();
    const { spec } = await workflows.start(id);
    expect(spec?.report?.steps).toHaveLength(27);
    await update(id, { disabled: true });
    await update(id, { name: "Weekly!" });
    await expect(update(id, { name: "Fortnightly" })).rejects.toMatchObject(EXCEEDED);
    await update(id, { report: action(1, 1) });
    await expect(update(id, { report: HALF })).rejects.toMatchObject(EXCEEDED);
  });

  test("is not made by the parameters of a start", async () => {
    const prompt = "{{ .Parameters.text }}";
    const agents = Array.from({ length: 50 }, () => ({ agent: { prompt: `${prompt}${prompt}` } }));
    const id = await workflows.make({ action: action(1, 1, ...agents), report: action(1, 1, ...agents) });
    await expect(
      workflows.start(id, { parameters: { text: "\u{1F6A2}".repeat(8_192) } }),
    ).rejects.toMatchObject(EXCEEDED);
    await workflows.start(id, { parameters: { text: "x" } });
  });
});

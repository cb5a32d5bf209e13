import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import {
  type WorkflowActionSchema,
  WorkflowSchema,
  type WorkflowStepSchema,
} from "#gen/service/v1/workflow_pb.js";
import { requireWorkflowFits, WORKFLOW_BYTES, workflowBytes } from "./workflow-size.ts";

type Step = MessageInitShape<typeof WorkflowStepSchema>;
type Action = MessageInitShape<typeof WorkflowActionSchema>;

const WIDE = "\u{1F6A2}";
const command = (text: string): Step => ({ step: { case: "task", value: { command: text } } });
const actionOf = (...steps: Step[]) =>
  ({ limits: { maxParallel: 1, maxTotal: 1 }, steps }) as unknown as Extract<Action, { $typeName?: never }>;
const fifty = (step: Step) => actionOf(...Array.from({ length: 50 }, () => step));

/** Returns a workflow of this many bytes, of commands in its action and its report. */
function workflowOf(bytes: number) {
  const long = command(WIDE.repeat(20_000));
  const made = create(WorkflowSchema, {
    metadata: { name: "Nightly" },
    spec: { action: fifty(long), report: actionOf(command("x"), command("x")) },
  });
  const [first, second] = made.spec?.report?.steps ?? [];
  if (first?.step.case !== "task" || second?.step.case !== "task") throw new Error("no commands");
  // Repeats until the lengths of the lengths are stable too; an odd byte may need another place.
  const place = first.step.value;
  for (let turn = 0; workflowBytes(made) !== bytes; turn += 1) {
    if (turn > 10) second.step.value.command += "x";
    place.command = "x".repeat(place.command.length + bytes - workflowBytes(made));
  }
  return made;
}

const refusalOf = (act: () => void) => {
  try {
    act();
    return undefined;
  } catch (error) {
    return error;
  }
};

describe("the size of a workflow", () => {
  test("is at most 4 MiB, action and report together", () => {
    expect(refusalOf(() => requireWorkflowFits(workflowOf(WORKFLOW_BYTES - 1)))).toBeUndefined();
    expect(refusalOf(() => requireWorkflowFits(workflowOf(WORKFLOW_BYTES)))).toBeUndefined();
    expect(refusalOf(() => requireWorkflowFits(workflowOf(WORKFLOW_BYTES + 1)))).toMatchObject({
      reason: ErrorReason.SIZE_EXCEEDED,
      metadata: { resource: "workflow", bytes: "4194305", limit_bytes: "4194304" },
    });
  });

  test("may stay where it was above that, and may not grow", () => {
    const before = workflowOf(WORKFLOW_BYTES + 100);
    const disabled = create(WorkflowSchema, before);
    if (disabled.spec) disabled.spec.disabled = true;
    expect(refusalOf(() => requireWorkflowFits(disabled, before))).toBeUndefined();
    expect(refusalOf(() => requireWorkflowFits(workflowOf(WORKFLOW_BYTES + 99), before))).toBeUndefined();
    expect(refusalOf(() => requireWorkflowFits(workflowOf(WORKFLOW_BYTES + 101), before))).toMatchObject({
      reason: ErrorReason.SIZE_EXCEEDED,
    });
  });

  test("leaves room for all that the specification bounds, with 100 commands of 20,000 characters", () => {
    const projectIds = Array.from({ length: 1_000 }, () => "0".repeat(36));
    const projects = { context: { case: "projects", value: { projectIds } } } as const;
    const agent = { context: { case: "agent", value: { prompt: WIDE.repeat(20_000) } } } as const;
    for (const context of [projects, agent]) {
      const trigger = { trigger: { case: "manual", value: {} }, context } as const;
      const largest = create(WorkflowSchema, {
        metadata: { name: WIDE.repeat(80), description: WIDE.repeat(500) },
        spec: {
          triggers: Array.from({ length: 10 }, () => trigger),
          action: fifty(command("x".repeat(20_000))),
          report: fifty(command('"'.repeat(20_000))),
          agentId: "0".repeat(36),
        },
      });
      expect(refusalOf(() => requireWorkflowFits(largest))).toBeUndefined();
    }
  });

  test.each<[string, Step]>([
    ["commands", command(WIDE.repeat(20_000))],
    [
      "pull requests",
      {
        step: {
          case: "pullRequest",
          value: { title: WIDE.repeat(500), description: WIDE.repeat(20_000), branch: WIDE.repeat(255) },
        },
      },
    ],
    ["prompts", { step: { case: "agent", value: { prompt: WIDE.repeat(20_000) } } }],
  ])("leaves room for fifty %s of the greatest length in the widest script", (_, step) => {
    const workflow = create(WorkflowSchema, { spec: { action: fifty(step) } });
    expect(refusalOf(() => requireWorkflowFits(workflow))).toBeUndefined();
  });
});

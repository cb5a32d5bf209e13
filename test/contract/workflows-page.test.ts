import { readFileSync } from "node:fs";
import { join } from "node:path";
import { create, fromJson } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import {
  WorkflowExecutionActionPhase as Action,
  WorkflowExecutionPhase as Execution,
  WorkflowExecutionAction_Status_StepStatus_StepPhase as Step,
  WorkflowTriggerContextSchema,
} from "#gen/service/v1/workflow_pb.js";
import { CreateWorkflowRequestSchema } from "#gen/service/v1/workflow_service_pb.js";
import { WORKFLOW_REASONS } from "../../src/domain/workflow/execution/workflow-error.ts";
import {
  ACTION_TRANSITIONS,
  EXECUTION_TRANSITIONS,
  STEP_TRANSITIONS,
  type Transition,
} from "../../src/domain/workflow/execution/workflow-transitions.ts";
import {
  checkWorkflowParameters,
  renderWorkflow,
} from "../../src/domain/workflow/parameter/workflow-parameters.ts";
import { checkAction, checkTriggers } from "../../src/domain/workflow/workflow-check.ts";
import { createCheck } from "../../src/rpc/check.ts";
import { CONTRACT } from "../../src/rpc/routes.ts";

const PAGE = readFileSync(join(import.meta.dirname, "../../docs/workflows.md"), "utf8");

/** The lines of the diagram under a heading. */
function diagramOf(heading: string): string[] {
  const section = PAGE.split(`### ${heading}\n`)[1]?.split(/^#/m)[0] ?? "";
  const diagram = /```mermaid\nstateDiagram-v2\n(.*?)```/s.exec(section)?.[1] ?? "";
  return diagram.split("\n").flatMap((line) => line.trim() || []);
}

type Names = Readonly<Record<number, string>>;

describe.each<[string, readonly Transition<number, string>[], Names]>([
  ["Execution", EXECUTION_TRANSITIONS, Execution],
  ["Action", ACTION_TRANSITIONS, Action],
  ["Step", STEP_TRANSITIONS, Step],
])("the diagram of the phases of an %s", (heading, table, names) => {
  test("shows the moves of the table and no others", () => {
    const moves = table.map(([from, event, to]) => `${names[from]} --> ${names[to]}: ${event}`);
    const shown = diagramOf(heading).filter((line) => !line.includes("[*]"));
    expect(shown.toSorted()).toEqual(moves.toSorted());
  });

  test("begins where everything begins, and ends where nothing follows", () => {
    const left = new Set(table.map(([from]) => from));
    const finals = new Set(table.map(([, , to]) => to).filter((phase) => !left.has(phase)));
    const ends = [...finals].map((phase) => `${names[phase]} --> [*]`);
    const shown = diagramOf(heading).filter((line) => line.includes("[*]"));
    expect(shown.toSorted()).toEqual(["[*] --> PENDING", ...ends].toSorted());
  });
});

test("the page has every reason of the service, and no other", () => {
  const listed = [...PAGE.matchAll(/^\| `(\w+)` \| (?:execution|action|step)/gm)].map((match) => match[1]);
  expect(listed.toSorted()).toEqual(Object.keys(WORKFLOW_REASONS).toSorted());
});

test("the page names operations that are in the contract", () => {
  const known = new Set(CONTRACT.flatMap(({ methods }) => methods.map(({ name }) => name)));
  const named = [
    ...PAGE.matchAll(/`((?:Create|Get|List|Update|Delete|Start|Cancel|Retry|Rotate|Stream|Redeliver)\w+)`/g),
  ];
  expect(named.map((match) => match[1]).filter((name) => !known.has(name ?? ""))).toEqual([]);
  expect(named.length).toBeGreaterThan(5);
});

test("the workflow of the page can be created and started as it is", () => {
  const [workflow, start] = [...PAGE.matchAll(/```json\n(.*?)```/gs)].map((match) =>
    JSON.parse(match[1] ?? ""),
  );
  const req = fromJson(CreateWorkflowRequestSchema, workflow);
  createCheck()(CreateWorkflowRequestSchema, req);
  checkWorkflowParameters(req);
  checkTriggers(req.triggers, 0);
  if (req.action) checkAction(req.action, "action");
  if (req.report) checkAction(req.report, "report");
  const { action, report, triggers } = req;
  const context = triggers[0]?.context ?? create(WorkflowTriggerContextSchema);
  const rendered = renderWorkflow({ action, report, context, contextPath: "" }, start.parameters);
  expect(rendered.unusedKeys).toEqual([]);
  expect(rendered.action?.steps.map(({ step }) => step.case)).toEqual(["task", "pullRequest", "report"]);
});

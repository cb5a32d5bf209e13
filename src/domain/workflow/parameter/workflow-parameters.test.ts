// biome-ignore-all lint/suspicious/noTemplateCurlyInString: programs for sh contain ${ } that are
// not template placeholders.
import { create, toJson } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import {
  WorkflowActionSchema,
  type WorkflowStep,
  WorkflowTriggerContextSchema,
  WorkflowTriggerSchema,
} from "#gen/service/v1/workflow_pb.js";
import {
  action,
  agent,
  agentContext,
  approval,
  manual,
  noProjects,
  pullRequest,
  report,
  repositorySearch,
  repositoryUrls,
  task,
} from "../../../../test/harness/workflow-parts.ts";
import { checkWorkflowParameters, renderWorkflow } from "./workflow-parameters.ts";

const expression = "{{ .Parameters.p }}";
const refusal = (path: string, message: string) =>
  expect.objectContaining({ message: expect.stringContaining(message), metadata: { field: path } });

const render = (steps: WorkflowStep[], parameters: Record<string, string>) =>
  renderWorkflow(
    { action: action(...steps), context: noProjects(), contextPath: "contextOverride" },
    parameters,
  );

describe("what is written", () => {
  test("may have expressions in exactly seven places", () => {
    checkWorkflowParameters({
      name: "docker ps --format '{{.ID}}'",
      description: "{{ }}",
      action: action(task(`echo ${expression}`), agent(expression), approval(expression)),
      report: action(pullRequest({ title: expression, description: expression, branch: expression })),
      triggers: [manual(agentContext(expression))],
    });
  });

  test.each([
    ["name", { name: expression }],
    ["description", { description: `{{ .Parameters }}` }],
    [
      "action.steps[1].report.outputs[0].command",
      { action: action(task("a"), report({ case: "command", value: expression })) },
    ],
    [
      "report.steps[0].report.outputs[0].prompt",
      { report: action(report({ case: "prompt", value: expression })) },
    ],
    [
      "report.steps[0].report.outputs[0].title",
      { report: action(report({ case: "prompt", value: "a" }, expression)) },
    ],
    [
      "triggers[0].time.cronExpression",
      {
        triggers: [
          create(WorkflowTriggerSchema, { trigger: { case: "time", value: { cronExpression: expression } } }),
        ],
      },
    ],
    [
      "triggers[1].context.repositories.repositoryUrls.repoUrls[1]",
      {
        triggers: [manual(noProjects()), manual(repositoryUrls("a", expression))],
      },
    ],
    [
      "triggers[0].context.repositories.repoSelector.repoSearchString",
      { triggers: [manual(repositorySearch(expression))] },
    ],
    [
      "triggers[0].context.repositories.repoSelector.scmHost",
      { triggers: [manual(repositorySearch("a", "{{ .Parameters.a"))] },
    ],
  ])("has none in %s", (path, written) => {
    expect(() => checkWorkflowParameters(written)).toThrow(
      refusal(path, `${path} has a parameter expression, which is allowed only in task.command`),
    );
  });

  test.each([
    ["action.steps[0].task.command", { action: action(task("echo {{ .Parameters }}")) }, "malformed"],
    [
      "action.steps[0].task.command",
      { action: action(task(`cat <<'E'\n${expression}\nE`)) },
      "quoted delimiter",
    ],
    [
      "action.steps[1].agent.prompt",
      { action: action(agent("a"), agent("{{ .Parameters.1x }}")) },
      "malformed",
    ],
    [
      "report.steps[0].pullRequest.title",
      { report: action(pullRequest({ title: "{{ .Parameters.a" })) },
      "malformed",
    ],
    [
      "report.steps[0].pullRequest.description",
      { report: action(pullRequest({ description: "{{ .Parameters.a | upper }}" })) },
      "malformed",
    ],
    [
      "triggers[0].context.agent.prompt",
      { triggers: [manual(agentContext("{{ .Parameters. }}"))] },
      "malformed",
    ],
    [
      "report.steps[0].pullRequest.branch",
      { report: action(pullRequest({ branch: "{{ .Parameters.a" })) },
      "malformed",
    ],
    [
      "action.steps[0].pullRequest.branch",
      { action: action(pullRequest({ branch: "a b" })) },
      "git allows no branch name that has a space",
    ],
    [
      "action.steps[0].pullRequest.branch",
      { action: action(pullRequest({ branch: "-a" })) },
      "begins with a dash",
    ],
    [
      "action.steps[0].pullRequest.branch",
      { action: action(pullRequest({ branch: `-${expression}` })) },
      "begins with a dash",
    ],
    [
      "action.steps[0].pullRequest.branch",
      { action: action(pullRequest({ branch: `${expression}..b` })) },
      "two dots",
    ],
  ])("is refused in %s", (path, written, message) => {
    expect(() => checkWorkflowParameters(written)).toThrow(refusal(path, message));
  });

  test("may have a branch that only some values spoil", () => {
    checkWorkflowParameters({
      action: action(pullRequest({ branch: `${expression}/${expression}.loc${expression}` })),
    });
  });
});

describe("a rendered workflow", () => {
  test("has its values in every place, commands by way of the environment, and leaves the original", () => {
    const template = {
      action: action(
        task(`echo ${expression} {{ .Parameters.q }}`),
        agent("Fix {{.Parameters.p}} in {{ .Parameters.prompt }}"),
        pullRequest({
          title: `T ${expression}`,
          description: `D ${expression}`,
          branch: "fix/{{.Parameters.q}}",
        }),
      ),
      report: action(task("echo '{{ .Parameters.p }}'"), agent("{{ .Parameters.q }}")),
      context: agentContext("Look at {{ .Parameters.p }}"),
      contextPath: "triggers[0].context",
    };
    const before = JSON.stringify([
      toJson(WorkflowActionSchema, template.action),
      toJson(WorkflowTriggerContextSchema, template.context),
    ]);
    const rendered = renderWorkflow(template, { p: "$(id)", q: "7", prompt: "", unused: "a", also: "b" });
    expect(rendered).toEqual({
      action: action(
        task('echo "${CHARTROOM_PARAMETER_p}" "${CHARTROOM_PARAMETER_q}"'),
        agent("Fix $(id) in "),
        pullRequest({ title: "T $(id)", description: "D $(id)", branch: "fix/7" }),
      ),
      report: action(task(`echo ''"\${CHARTROOM_PARAMETER_p}"''`), agent("7")),
      context: agentContext("Look at $(id)"),
      environment: { CHARTROOM_PARAMETER_p: "$(id)", CHARTROOM_PARAMETER_q: "7" },
      unusedKeys: ["also", "unused"],
      hasParameters: true,
    });
    expect(
      JSON.stringify([
        toJson(WorkflowActionSchema, template.action),
        toJson(WorkflowTriggerContextSchema, template.context),
      ]),
    ).toBe(before);
  });

  test("without expressions is the workflow, and needs no parameters", () => {
    const steps = [task("docker ps --format '{{.ID}}' `x`"), agent("{{ }}")];
    expect(render(steps, {})).toEqual({
      action: action(...steps),
      report: undefined,
      context: noProjects(),
      environment: {},
      unusedKeys: [],
      hasParameters: false,
    });
  });

  test("does not read values again", () => {
    const { action: rendered } = render([agent(`${expression}{{ .Parameters.q }}`)], {
      p: "{{ .Parameters.q }}$&",
      q: expression,
    });
    expect(rendered?.steps[0]?.step).toEqual(
      action(agent("{{ .Parameters.q }}$&{{ .Parameters.p }}")).steps[0]?.step,
    );
  });

  test.each([
    [
      "action.steps[2].task.command",
      { action: action(task("a"), task("a"), task("echo {{.Parameters.b}}")) },
    ],
    ["action.steps[0].task.command", { action: action(task("# {{.Parameters.b}}")) }],
    ["report.steps[0].agent.prompt", { report: action(agent("{{.Parameters.b}}")) }],
    ["action.steps[0].pullRequest.title", { action: action(pullRequest({ title: "{{.Parameters.b}}" })) }],
    ["contextOverride.agent.prompt", { context: agentContext("{{.Parameters.b}}") }],
  ])("needs every key that it uses: %s", (path, template) => {
    expect(() =>
      renderWorkflow(
        { context: noProjects(), contextPath: "contextOverride", ...template },
        { a: "", B: "" },
      ),
    ).toThrow(refusal(path, `${path} uses the parameter b, which is not given`));
  });

  test.each(["constructor", "toString", "__proto__", "hasOwnProperty"])(
    "has no parameter %s of its own",
    (key) => {
      expect(() => render([agent(`{{ .Parameters.${key} }}`)], {})).toThrow(
        `uses the parameter ${key}, which is not given`,
      );
      expect(() => render([task(`echo {{ .Parameters.${key} }}`)], {})).toThrow("which is not given");
    },
  );

  test("takes a key that objects have, when it is given", () => {
    const { environment } = render([task("echo {{ .Parameters.constructor }}")], {
      constructor: "a",
    } as never);
    expect(environment).toEqual({ CHARTROOM_PARAMETER_constructor: "a" });
  });

  test("refuses expressions of a context that was never written", () => {
    const context = repositorySearch(expression);
    expect(() => renderWorkflow({ context, contextPath: "contextOverride" }, { p: "a" })).toThrow(
      refusal("contextOverride.repositories.repoSelector.repoSearchString", "is allowed only in"),
    );
  });
});

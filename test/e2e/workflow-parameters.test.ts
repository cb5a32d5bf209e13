import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { expectRefused, ok } from "../harness/host-token.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { OVER_REPOSITORY } from "../harness/webhook.ts";
import { ACTION, type WorkflowCalls, workflowCalls } from "../harness/workflow.ts";

let server: ReachableServer;
let workflows: WorkflowCalls;
beforeAll(async () => {
  server = await startHostedServer();
  workflows = workflowCalls(server);
});
afterAll(stopAll);

const using = (...steps: object[]) => ({ ...ACTION, steps });
const command = (text: string) => using({ task: { command: text } });
const HOURLY = { time: { cronExpression: "0 * * * *" }, context: OVER_REPOSITORY };
const ON_PULL_REQUEST = { pullRequest: {}, context: { fromTrigger: {} } };
const BY_HAND = { manual: {}, context: OVER_REPOSITORY };
const WORD = { key: "word", description: "what to say", defaultValue: "hello" };

describe("a trigger that gives no parameters", () => {
  const needs = (field: string, trigger: string) => {
    const message = `${field} uses the parameter word, which ${trigger} cannot give`;
    return new RegExp(`^${message.replaceAll(/[.[\]]/g, "\\$&")}`);
  };

  test.each<[string, object, RegExp]>([
    [
      "the clock's, and a command",
      { triggers: [BY_HAND, HOURLY], action: command("echo {{ .Parameters.word }}") },
      needs("action.steps[0].task.command", "triggers[1].time"),
    ],
    [
      "a pull request's, and an agent's prompt",
      { triggers: [ON_PULL_REQUEST], action: using({ agent: { prompt: "say {{ .Parameters.word }}" } }) },
      needs("action.steps[0].agent.prompt", "triggers[0].pullRequest"),
    ],
    [
      "the clock's, and the report",
      { triggers: [HOURLY], report: command("echo {{ .Parameters.word }}") },
      needs("report.steps[0].task.command", "triggers[0].time"),
    ],
    [
      "its own context, behind one that needs none",
      { triggers: [HOURLY, { ...HOURLY, context: { agent: { prompt: "{{ .Parameters.word }}" } } }] },
      needs("triggers[1].context.agent.prompt", "triggers[1].time"),
    ],
    [
      "a declaration without a default",
      {
        triggers: [HOURLY],
        action: command("echo {{ .Parameters.word }}"),
        parameters: [{ key: "word" }],
      },
      needs("action.steps[0].task.command", "triggers[0].time"),
    ],
    [
      "a default that its place does not take",
      {
        triggers: [HOURLY],
        action: using({ pullRequest: { title: "x", branch: "{{ .Parameters.word }}" } }),
        parameters: [{ key: "word", defaultValue: "a..b" }],
      },
      /^action\.steps\[0\]\.pullRequest\.branch: git allows no branch name/,
    ],
  ])("is refused where it is written: %s", async (_, body, message) => {
    await workflows.refuses(body, 400, "VALUE_UNUSABLE", message);
  });

  test("is refused by whichever write makes it so, and taken with a default", async () => {
    const action = command("echo {{ .Parameters.word }}");
    const { id } = await workflows.created({ triggers: [BY_HAND], action });
    const refused = async (body: object) =>
      expectRefused(await workflows.update(id, body), 400, "VALUE_UNUSABLE");
    await refused({ triggers: [HOURLY] });
    await workflows.updated(id, { triggers: [HOURLY], parameters: [WORD] });
    await refused({ parameters: [] });
    await refused({ parameters: [{ key: "word" }] });
    await refused({ action: command("echo {{ .Parameters.word }} {{ .Parameters.other }}") });
    await refused({ report: command("echo {{ .Parameters.other }}") });
    const { spec } = await workflows.updated(id, { action: command("echo {{.Parameters.word}}") });
    expect(spec.parameters).toEqual([{ ...WORD, payloadField: "" }]);
    await workflows.updated(id, { triggers: [BY_HAND], parameters: [] });
  });
});

test("an expression in what says what a parameter is for is refused", async () => {
  const parameters = [{ key: "word", description: "{{ .Parameters.word }}" }];
  await workflows.refuses({ parameters }, 400, "VALUE_UNUSABLE", /^parameters\[0\]\.description has/);
});

describe("a start by hand", () => {
  const STEPS = using(
    { task: { command: "echo {{ .Parameters.word }}" } },
    { agent: { prompt: "say {{ .Parameters.word }} to {{ .Parameters.whom }}" } },
    {
      pullRequest: {
        title: "{{ .Parameters.word }}",
        description: "{{ .Parameters.word }}",
        branch: "say/{{ .Parameters.word }}",
      },
    },
  );
  const texts = (execution: { spec: { action: { steps: Record<string, object>[] } } }) => {
    const [, agent, pullRequest] = execution.spec.action.steps;
    return { ...agent?.agent, ...pullRequest?.pullRequest };
  };
  const all = (word: string) => ({ title: word, description: word, branch: `say/${word}` });

  test("gets the defaults of what it does not give, in every place, and its own value before them", async () => {
    const { id } = await workflows.created({
      triggers: [{ manual: {}, context: { agent: { prompt: "go to {{ .Parameters.word }}" } } }],
      action: STEPS,
      parameters: [WORD, { key: "whom" }, { key: "unused", defaultValue: "x" }],
    });
    const start = async (parameters: object) =>
      (await ok(workflows.call("StartWorkflow", { workflowId: id, parameters }))).workflowExecution;
    const byDefault = await start({ whom: "Ann" });
    expect(texts(byDefault)).toMatchObject({ prompt: "say hello to Ann", ...all("hello") });
    expect(byDefault.spec.trigger.context.agent.prompt).toBe("go to hello");
    // A default that nothing uses was given by nobody.
    expect(byDefault.status.warnings).toEqual([]);
    const given = await start({ whom: "Ann", word: "bye" });
    expect(texts(given)).toMatchObject({ prompt: "say bye to Ann", ...all("bye") });
    const refused = await workflows.call("StartWorkflow", { workflowId: id, parameters: { word: "bye" } });
    expectRefused(refused, 400, "VALUE_UNUSABLE", /whom, which is not given and has no default/);
  });

  test("may give a key that is not declared: one that nothing uses is a warning, as ever", async () => {
    const { id } = await workflows.created({
      triggers: [BY_HAND],
      action: command("echo {{ .Parameters.word }} {{ .Parameters.more }}"),
      parameters: [WORD],
    });
    const parameters = { more: "used", wrod: "a slip" };
    const { workflowExecution } = await ok(workflows.call("StartWorkflow", { workflowId: id, parameters }));
    expect(workflowExecution.status.warnings).toMatchObject([
      { reason: "parameter_unused", meta: { parameter: "wrod" } },
    ]);
  });

  test("takes the empty text for a value, as a default too", async () => {
    const { id } = await workflows.created({
      triggers: [{ manual: {}, context: { agent: { prompt: "go{{ .Parameters.word }}" } } }],
      parameters: [{ key: "word", defaultValue: "" }],
    });
    const { workflowExecution } = await ok(workflows.call("StartWorkflow", { workflowId: id }));
    expect(workflowExecution.spec.trigger.context.agent.prompt).toBe("go");
  });
});

import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { expectRefused, ok } from "../harness/host-token.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { ACTION, type WorkflowCalls, workflowCalls } from "../harness/workflow.ts";

let server: ReachableServer;
let workflows: WorkflowCalls;
beforeAll(async () => {
  server = await startHostedServer();
  workflows = workflowCalls(server);
});
afterAll(stopAll);

const URLS = ["https://git.example.org/team/ship.git", "https://git.example.org/team/sail.git"];
const over = (...repoUrls: string[]) => ({ repositories: { repositoryUrls: { repoUrls } } });
const BY_HAND = { manual: {}, context: over(...URLS, ...URLS) };
/** So rarely that no instant passes between two calls. */
const RARELY = { time: { cronExpression: "0 0 29 2 *" }, context: over(...URLS) };
const PROMPT = { agent: { prompt: "say {{ .Parameters.word }} to {{ .Parameters.whom }}" } };
const TALK = { limits: { maxParallel: 1, maxTotal: 10 }, steps: [PROMPT] };

const previewed = async (body: object) => ok(workflows.call("PreviewWorkflow", body));
const executions = async () => (await ok(workflows.call("ListWorkflowExecutions", {}))).workflowExecutions;

describe("PreviewWorkflow", () => {
  test("shows what the start then makes, within the limit of the workflow", async () => {
    const before = (await executions()).length;
    const { id } = await workflows.created({ triggers: [BY_HAND], action: ACTION });
    const shown = await previewed({ workflowId: id });
    expect(shown.refusal).toBeUndefined();
    expect(shown.sources.map(({ name }: { name: string }) => name)).toEqual(["ship"]);
    expect(shown.leftOutCount).toBe(1);
    expect((await executions()).length).toBe(before);
    const { workflowExecution } = await ok(workflows.call("StartWorkflow", { workflowId: id }));
    const filter = { workflowExecutionIds: [workflowExecution.id] };
    const { workflowExecutionActions } = await ok(workflows.call("ListWorkflowExecutionActions", { filter }));
    const [action] = workflowExecutionActions;
    expect({ name: action.metadata.actionName, context: action.spec.context }).toEqual(shown.sources[0]);
  });

  test("names every parameter that is missing and every one too many, as the start refuses it", async () => {
    const { id } = await workflows.created({ triggers: [BY_HAND], action: TALK });
    const parameters = { other: "x" };
    const shown = await previewed({ workflowId: id, parameters });
    expect(shown.missingParameters).toEqual(["whom", "word"]);
    expect(shown.unusedParameters).toEqual(["other"]);
    const refused = await workflows.call("StartWorkflow", { workflowId: id, parameters });
    expect(refused.status).toBe(400);
    expect(shown.refusal).toMatchObject({
      reason: "ERROR_REASON_VALUE_UNUSABLE",
      message: refused.body.message,
    });
    const whole = await previewed({ workflowId: id, parameters: { word: "hello", whom: "all" } });
    expect(whole.missingParameters).toEqual([]);
    expect(whole.refusal).toBeUndefined();
  });

  test("tells why a start would be refused, and shows the sources all the same", async () => {
    const { id } = await workflows.created({ triggers: [BY_HAND], action: TALK });
    await workflows.updated(id, { disabled: true });
    const shown = await previewed({ workflowId: id });
    expect(shown.refusal.reason).toBe("ERROR_REASON_WORKFLOW_DISABLED");
    expect(shown.sources).toHaveLength(2);
    const bare = await workflows.created();
    expect((await previewed({ workflowId: bare.id })).refusal.reason).toBe("ERROR_REASON_CONTEXT_MISSING");
  });

  test("refuses an override as the start does, also one whose prompt has a broken expression", async () => {
    const { id } = await workflows.created();
    for (const contextOverride of [{ agent: { prompt: "{{ .Parameters.}}" } }, { fromTrigger: {} }]) {
      const refused = await workflows.call("StartWorkflow", { workflowId: id, contextOverride });
      expect(refused.status).toBeGreaterThanOrEqual(400);
      const { refusal } = await previewed({ workflowId: id, contextOverride });
      expect(refusal.message).toBe(refused.body.message);
    }
    const contextOverride = { projects: { projectIds: [id] } };
    const absent = await workflows.call("PreviewWorkflow", { workflowId: id, contextOverride });
    expectRefused(absent, 404, "NOT_FOUND", /^project not found$/);
  });

  test("leaves a search to the start, which is refused without the executor's token", async () => {
    const { id } = await workflows.created();
    const selector = { repoSearchString: "team", scmHost: "Git.Example.Org" };
    const contextOverride = { repositories: { repoSelector: selector } };
    const shown = await previewed({ workflowId: id, contextOverride });
    expect(shown.search).toEqual({ scmHost: "git.example.org", repoSearchString: "team", maxTotal: 1 });
    expect(shown.sources).toEqual([]);
    expect(shown.refusal.reason).toBe("ERROR_REASON_CREDENTIAL_MISSING");
  });

  test("shows when schedules come due, those of an editor before those of the workflow", async () => {
    const schedules = [{ cronExpression: "30 2 * * *", timeZone: "Europe/Berlin" }];
    const { schedules: shown } = await previewed({ schedules });
    expect(shown).toHaveLength(1);
    expect(shown[0].instants).toHaveLength(5);
    for (const instant of shown[0].instants) {
      const format = { hour: "2-digit", minute: "2-digit", timeZone: "Europe/Berlin" } as const;
      expect(["02:30", "03:00"]).toContain(new Date(instant).toLocaleTimeString("en-GB", format));
    }
    const { id } = await workflows.created({ triggers: [BY_HAND, RARELY] });
    const own = await previewed({ workflowId: id });
    expect(own.schedules).toEqual((await ok(workflows.get(id))).workflow.nextInstants);
    expect(own.schedules[0].triggerIndex).toBe(1);
    const both = await previewed({ workflowId: id, schedules });
    expect(both.schedules).toHaveLength(1);
    expect(both.schedules[0].triggerIndex).toBe(0);
    expect(both.schedules[0].instants).toHaveLength(5);
  });

  test.each([
    [{ cronExpression: "0 0 30 2 *" }, "schedules[1].cronExpression"],
    [{ cronExpression: "0 0" }, "schedules[1].cronExpression"],
    [{ cronExpression: "0 0 * * *", timeZone: "Mars/Olympus" }, "schedules[1].timeZone"],
  ])("refuses the schedule %j by its field", async (schedule, field) => {
    const good = { cronExpression: "0 0 * * *" };
    const refused = await workflows.call("PreviewWorkflow", { schedules: [good, schedule] });
    expectRefused(refused, 400, "VALUE_UNUSABLE");
    expect(JSON.stringify(refused.body)).toContain(field);
  });
});

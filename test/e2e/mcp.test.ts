import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { type Answer, post } from "../harness/call.ts";
import { doAction, type FakeRunner, registerRunner, succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import {
  type AgentFixture,
  createAgentFixture,
  leaseAgentExecution,
  startLeasedAgentExecution,
} from "../harness/leased-agent-execution.ts";
import { insertEnvironmentToken } from "../harness/machine-token.ts";
import { withServerData } from "../harness/member.ts";
import { addOrganization } from "../harness/organization.ts";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";
import { startExecution, task } from "../harness/started-execution.ts";
import { until } from "../harness/until.ts";

type Body = Answer["body"];

/** The revision without sessions, and those before it. */
const ERAS = ["modern", "legacy"] as const;

const DEFAULT_TOOLS = [
  "decide_approval",
  "get_environment_diff",
  "get_workflow_execution",
  "list_agent_executions",
  "list_approvals",
  "list_workflow_execution_actions",
  "list_workflow_executions",
  "list_workflows",
  "send_to_agent_execution",
  "start_agent",
  "start_workflow",
  "stream_action_logs",
  "watch_agent_execution",
  "watch_events",
];
const CHANGES = ["decide_approval", "send_to_agent_execution", "start_agent", "start_workflow"];

let server: HostedServer;
let runner: FakeRunner;
let home: AgentFixture;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
  runner = await registerRunner(server);
  home = await createAgentFixture(server);
});
afterAll(stopAll);

const clients: Client[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
});

const leaseAction = () => runner.leaseOne({ kinds: ["WORK_KIND_ACTION"] });

/** Connects the official client. */
async function connect(
  token = server.token,
  { path = "/mcp", era = "modern" as (typeof ERAS)[number] } = {},
) {
  const client = new Client(
    { name: "a test", version: "1.0.0" },
    { versionNegotiation: { mode: era === "modern" ? "auto" : "legacy" } },
  );
  const transport = new StreamableHTTPClientTransport(new URL(`${server.url}${path}`), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
  });
  await client.connect(transport);
  clients.push(client);
  return client;
}

/** Calls a tool; whether it failed, what it answered, and what it says of that. */
async function callTool(client: Client, name: string, args: Record<string, unknown> = {}) {
  const result = await client.callTool({ name, arguments: args });
  const value = result.structuredContent as Body;
  const [text] = result.content as { text: string }[];
  expect(JSON.parse(text?.text ?? "")).toEqual(value);
  return { failed: result.isError === true, value, meta: (result._meta ?? {}) as Body };
}

async function expectTool(client: Client, name: string, args?: Record<string, unknown>): Promise<Body> {
  const { failed, value } = await callTool(client, name, args);
  expect([failed, value]).toEqual([false, value]);
  return value;
}

async function refusal(client: Client, name: string, args?: Record<string, unknown>) {
  const { failed, value } = await callTool(client, name, args);
  return [failed, value.code, value.reason?.replace("ERROR_REASON_", "")];
}

/** Calls a tool of a stream, each time behind the answer before, until an answer is enough; all that came, and that answer. */
async function follow(
  client: Client,
  name: string,
  args: Record<string, unknown>,
  isEnough: (answer: Body) => boolean = ({ ended }) => ended,
) {
  const messages: Body[] = [];
  for (let after = args.after; ; ) {
    const answer = await expectTool(client, name, { ...args, ...(after !== undefined && { after }) });
    messages.push(...answer.messages);
    if (isEnough(answer)) return { ...answer, messages };
    after = answer.next;
  }
}

const names = async (client: Client) => (await client.listTools()).tools.map(({ name }) => name).toSorted();

describe.each(ERAS)("a client of the %s protocol", (era) => {
  test("is offered the tools of its caller, with what each does", async () => {
    const client = await connect(server.token, { era });
    expect(client.getProtocolEra()).toBe(era);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name).toSorted()).toEqual(DEFAULT_TOOLS);
    const changing = tools.filter(({ annotations }) => annotations?.readOnlyHint !== true);
    expect(changing.map(({ name }) => name).toSorted()).toEqual(CHANGES);
    const start = tools.find(({ name }) => name === "start_workflow");
    expect(start).toMatchObject({
      title: "Start workflow",
      annotations: { readOnlyHint: false, idempotentHint: false },
      inputSchema: { type: "object", required: ["workflowId"], additionalProperties: false },
    });
    expect(Object.keys(start?.inputSchema.properties ?? {})).toContain("idempotencyKey");
  });

  test("starts a workflow and reads what came of it", async () => {
    const { workflowId } = await startExecution(server, { steps: [task("true")] });
    await doAction(runner, await leaseAction());
    const client = await connect(server.token, { era });
    const { workflowExecution } = await expectTool(client, "start_workflow", { workflowId });
    await doAction(runner, await leaseAction());
    const read = await expectTool(client, "get_workflow_execution", {
      workflowExecutionId: workflowExecution.id,
    });
    expect(read.workflowExecution.status.phase).toBe("WORKFLOW_EXECUTION_PHASE_COMPLETED");
    const listed = await expectTool(client, "list_workflow_execution_actions", {
      filter: { workflowExecutionIds: [workflowExecution.id] },
    });
    expect(listed.workflowExecutionActions).toHaveLength(1);
  });
});

test("a failure comes with its reason", async () => {
  const client = await connect();
  const { failed, value } = await callTool(client, "start_workflow", { workflowId: crypto.randomUUID() });
  expect([failed, value]).toEqual([
    true,
    {
      code: "not_found",
      message: "workflow not found",
      reason: "ERROR_REASON_NOT_FOUND",
      metadata: { resource: "workflow" },
    },
  ]);
  const invalid = await callTool(client, "start_workflow", { workflowId: "none" });
  expect([invalid.failed, invalid.value.reason]).toEqual([true, "ERROR_REASON_CONSTRAINT_VIOLATED"]);
  expect(invalid.value.violations.violations[0].field.elements[0].fieldName).toBe("workflow_id");
  expect(await refusal(client, "start_workflow", { workflow: "none" })).toEqual([
    true,
    "invalid_argument",
    "BODY_MALFORMED",
  ]);
  await expect(client.callTool({ name: "start_server", arguments: {} })).rejects.toThrow(
    "no tool has this name",
  );
});

describe("a call with an idempotency key", () => {
  test("has one effect, however often it comes", async () => {
    const client = await connect(home.token);
    const args = { name: "Once", idempotencyKey: "first" };
    const first = await callTool(client, "start_agent", args);
    const again = await callTool(client, "start_agent", args);
    const other = await callTool(client, "start_agent", { ...args, idempotencyKey: "second" });
    expect([first.failed, again.failed, other.failed]).toEqual([false, false, false]);
    expect(again.value).toEqual(first.value);
    expect([first.meta.replayed, again.meta.replayed, other.meta.replayed]).toEqual([
      undefined,
      true,
      undefined,
    ]);
    expect(other.value.agentExecutionId).not.toBe(first.value.agentExecutionId);
    const changed = { ...args, name: "Twice" };
    expect(await refusal(client, "start_agent", changed)).toEqual([
      true,
      "already_exists",
      "IDEMPOTENCY_KEY_REUSED",
    ]);
  });

  test("has a key that is a text, and reads have none", async () => {
    const client = await connect(home.token);
    for (const [tool, idempotencyKey] of [
      ["start_agent", 7],
      ["start_agent", ""],
      ["start_agent", "a b"],
      ["start_agent", "a\nb"],
      ["start_agent", "schlüssel"],
      ["start_agent", "k".repeat(256)],
      ["list_agent_executions", "k"],
    ] as const) {
      expect(await refusal(client, tool, { idempotencyKey })).toEqual([
        true,
        "invalid_argument",
        "VALUE_UNUSABLE",
      ]);
    }
    expect(await refusal(client, "start_agent", { idempotencyKey: "k".repeat(255) })).toEqual([
      false,
      undefined,
      undefined,
    ]);
  });
});

describe("a tool of a stream", () => {
  test("goes on with the output of a step where the answer before ended", async () => {
    await startExecution(server, { steps: [task("one")] });
    const work = await leaseAction();
    const print = (offset: number, text: string) =>
      succeeded(
        runner.report(work, {
          logs: [{ stepIndex: 0, offset: String(offset), data: Buffer.from(text).toString("base64") }],
        }),
      );
    const client = await connect();
    const workflowExecutionActionId = work.action.actionId;
    await print(0, "grüße\n");
    const first = await follow(client, "stream_action_logs", { workflowExecutionActionId });
    expect(first).toMatchObject({ messages: [{ text: "grüße\n", attempt: 1 }], next: "1.0.8", ended: true });
    await print(8, "more\n");
    const { next: after } = first;
    const more = { workflowExecutionActionId, after, follow: true };
    const second = await expectTool(client, "stream_action_logs", more);
    expect(second).toMatchObject({ messages: [{ text: "more\n" }], next: "1.0.13", ended: false });
    await doAction(runner, work);
    const last = await follow(client, "stream_action_logs", { ...more, after: second.next });
    expect(last).toMatchObject({ messages: [], next: "1.0.13", ended: true });
  });

  test("waits for what happens, and misses nothing between two calls", async () => {
    const { token } = await addOrganization(server, "watched");
    const client = await connect(token);
    const begun = await expectTool(client, "watch_events", { waitSeconds: 1 });
    expect([begun.ended, begun.next]).toEqual([false, expect.stringMatching(/^\d+$/)]);
    const initializer = { specs: [{ git: { remoteUri: "https://git.example.org/team/a.git" } }] };
    const { project } = await succeeded(post(server, "ProjectService/CreateProject", { initializer }, token));
    const isOfProject = ({ resourceId }: Body) => resourceId === project.id;
    const { next } = await follow(
      client,
      "watch_events",
      { after: begun.next, waitSeconds: 50 },
      ({ messages }) => messages.some(isOfProject),
    );
    expect(BigInt(next)).toBeGreaterThan(BigInt(begun.next));
    // Nothing more comes, and a call waits no longer than it is asked to.
    const quiet = await follow(
      client,
      "watch_events",
      { after: next, waitSeconds: 1 },
      ({ messages }) => messages.length === 0,
    );
    expect([quiet.ended, BigInt(quiet.next) >= BigInt(next)]).toEqual([false, true]);
  });

  test("tells that a run of an agent has ended", async () => {
    const run = await startLeasedAgentExecution(home);
    const client = await connect(home.token);
    const watched = { agentExecutionId: run.id };
    const running = await expectTool(client, "watch_agent_execution", { ...watched, waitSeconds: 1 });
    expect([running.ended, running.messages[0].agentExecution.id]).toEqual([false, run.id]);
    await succeeded(home.runner.finish(run.work));
    const stopped = await follow(client, "watch_agent_execution", { ...watched, after: running.next });
    expect(stopped.messages.at(-1).agentExecution.status.phase).toBe("PHASE_STOPPED");
  });

  test("takes whole seconds up to 50, and places of its stream", async () => {
    const client = await connect();
    for (const args of [
      { waitSeconds: 0 },
      { waitSeconds: 51 },
      { waitSeconds: 1.5 },
      { waitSeconds: "1" },
      { after: 7 },
      { after: "a place" },
    ]) {
      expect(await refusal(client, "watch_events", args)).toEqual([
        true,
        "invalid_argument",
        "VALUE_UNUSABLE",
      ]);
    }
  });

  test("names the parameter for a place of no message", async () => {
    const client = await connect();
    const { structuredContent } = await client.callTool({ name: "watch_events", arguments: { after: "x" } });
    expect(structuredContent).toMatchObject({
      message: expect.stringMatching(/^after must be the id of a message of this stream/),
      metadata: { field: "after" },
    });
  });
});

describe("what a caller may not do", () => {
  test("a token that only reads is not offered, and cannot", async () => {
    const made = await succeeded(post(server, "UserService/CreatePersonalAccessToken", { readOnly: true }));
    const client = await connect(made.token);
    expect(await names(client)).toEqual(DEFAULT_TOOLS.filter((name) => !CHANGES.includes(name)));
    expect(await refusal(client, "start_workflow", { workflowId: crypto.randomUUID() })).toEqual([
      true,
      "permission_denied",
      "PERMISSION_DENIED",
    ]);
  });

  test("is found in another organization alone", async () => {
    const { workflowId } = await startExecution(server, { steps: [task("true")] });
    await doAction(runner, await leaseAction());
    const client = await connect(home.token);
    expect(await refusal(client, "start_workflow", { workflowId })).toEqual([true, "not_found", "NOT_FOUND"]);
  });
});

describe("an agent with the token of its environment", () => {
  const user = (content: string) => ({ inputs: [{ text: { content } }] });
  const DENIED = [true, "permission_denied", "PERMISSION_DENIED"];

  test("starts a sub-agent of its own run, and nothing else", async () => {
    const run = await startLeasedAgentExecution(home, { name: "Parent" });
    const client = await connect(run.work.environmentToken);
    expect(await names(client)).toEqual(["start_agent"]);
    const args = { name: "Child", userInput: user("look into it"), idempotencyKey: "child" };
    const { agentExecutionId } = await expectTool(client, "start_agent", args);
    expect((await expectTool(client, "start_agent", args)).agentExecutionId).toBe(agentExecutionId);
    const { agentExecution } = await succeeded(
      post(server, "AgentService/GetAgentExecution", { agentExecutionId }, home.token),
    );
    const parent = await run.get();
    expect(agentExecution.metadata).toMatchObject({
      name: "Child",
      parentExecutionId: run.id,
      creator: parent.metadata.creator,
    });
    expect(agentExecution.status.usedEnvironments[0].environmentId).toBe(run.environmentId);
    expect(parent.status.subagents.map(({ id }: Body) => id)).toEqual([agentExecutionId]);
    for (const [tool, more] of [
      ["list_workflows", {}],
      ["list_agent_executions", {}],
      ["watch_agent_execution", { agentExecutionId }],
      ["send_to_agent_execution", { agentExecutionId, userInput: user("more") }],
      ["watch_events", {}],
    ] as const) {
      expect([tool, ...(await refusal(client, tool, more))]).toEqual([tool, ...DENIED]);
    }
  });

  test("chooses its keys without the other agents of its environment", async () => {
    const own = await createAgentFixture(server);
    const run = await startLeasedAgentExecution(own);
    const args = { userInput: user("look into it"), idempotencyKey: "first" };
    const parent = await connect(run.work.environmentToken);
    const { agentExecutionId: childId } = await expectTool(parent, "start_agent", args);
    const { environmentToken } = await leaseAgentExecution(own.runner, childId);
    const child = await connect(environmentToken);
    const { agentExecutionId } = await expectTool(child, "start_agent", args);
    const { agentExecution } = await succeeded(
      post(server, "AgentService/GetAgentExecution", { agentExecutionId }, own.token),
    );
    expect(agentExecution.metadata.parentExecutionId).toBe(childId);
  });

  test("says of it which agent, a name and one text", async () => {
    const run = await startLeasedAgentExecution(home);
    const client = await connect(run.work.environmentToken);
    for (const more of [
      { codeContext: { environmentId: run.environmentId } },
      { mode: "AGENT_MODE_PLANNING" },
      { runnerId: home.runner.runnerId },
      { userInput: { inputs: [...user("a").inputs, ...user("b").inputs] } },
      { userInput: undefined },
    ]) {
      expect(await refusal(client, "start_agent", { userInput: user("a"), ...more })).toEqual([
        true,
        "invalid_argument",
        "VALUE_UNUSABLE",
      ]);
    }
    expect((await run.get()).status.subagents).toEqual([]);
  });

  test("is held against the policies about sub-agents", async () => {
    const strict = await createAgentFixture(server);
    const run = await startLeasedAgentExecution(strict);
    await strict.set({ agentPolicy: { maxSubagentsPerEnvironment: 1 } });
    const client = await connect(run.work.environmentToken);
    await expectTool(client, "start_agent", { userInput: user("a") });
    const second = await callTool(client, "start_agent", { userInput: user("b") });
    expect([second.failed, second.value.reason]).toEqual([true, "ERROR_REASON_POLICY_DENIED"]);
    expect(second.value.policyDecision.fieldPath).toBe("agentPolicy.maxSubagentsPerEnvironment");
  });

  test("is refused where the organization disables the protocol for agents, and people are not", async () => {
    const strict = await createAgentFixture(server);
    const run = await startLeasedAgentExecution(strict);
    const client = await connect(run.work.environmentToken);
    await strict.set({ agentPolicy: { mcpDisabled: true } });
    await expect(
      client.callTool({ name: "start_agent", arguments: { userInput: user("a") } }),
    ).rejects.toThrow("agentPolicy.mcpDisabled");
    expect((await run.get()).status.subagents).toEqual([]);
    expect(await names(await connect(strict.token))).toEqual(DEFAULT_TOOLS);
  });

  test("has no such token once its run has ended, and other work of an environment has none", async () => {
    const run = await startLeasedAgentExecution(home);
    const { organizationId } = home;
    const { value } = await withServerData(server, (store, keys) =>
      insertEnvironmentToken(store, keys, { organizationId, environmentId: run.environmentId }),
    );
    const others = await connect(value);
    expect(await refusal(others, "start_agent", { userInput: user("a") })).toEqual(DENIED);
    await succeeded(home.runner.finish(run.work));
    await expect(connect(run.work.environmentToken)).rejects.toThrow();
  });
});

test("operations that the URL names are tools as well", async () => {
  const client = await connect(server.token, { path: "/mcp?tools=ProjectService/ListProjects,GetProject" });
  expect(await names(client)).toEqual([...DEFAULT_TOOLS, "get_project", "list_projects"].toSorted());
  const { projects } = await expectTool(client, "list_projects", { pagination: { pageSize: 1 } });
  expect(projects.length).toBeLessThanOrEqual(1);
});

test("the access log names the operation of a tool, and how it ended", async () => {
  const client = await connect();
  // No other test here calls it.
  await callTool(client, "get_environment_diff", { environmentId: crypto.randomUUID() });
  const line = await until(
    async () =>
      server
        .log()
        .findLast(({ operation }) => operation === "service.v1.EnvironmentService/GetEnvironmentDiff"),
    (found) => found !== undefined,
  );
  expect(line).toMatchObject({ code: "not_found", status: 200 });
  expect(server.logText()).not.toContain(server.token);
});

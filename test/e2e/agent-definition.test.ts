import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { type Answer, post, reasonOf } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import { type AgentFixture, createAgentFixture } from "../harness/leased-agent-execution.ts";
import { startRegisteredHostedRunner, stopRunners } from "../harness/runner-process.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { until } from "../harness/until.ts";

let server: ReachableServer;
let home: AgentFixture;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
});
beforeEach(async () => {
  home = await createAgentFixture(server);
});
afterAll(async () => {
  await stopRunners();
  await stopAll();
});

const definition = {
  kind: "AGENT_KIND_TEXT",
  command: "cat",
  arguments: ["-u"],
  variables: { TONE: "calm" },
};
const call = (operation: string, body: object, token = home.token) =>
  post(server, `AgentService/${operation}`, body, token);
const ok = (operation: string, body: object) => succeeded(call(operation, body));
const create = (more: object = {}) => call("CreateAgent", { name: "Planner", definition, ...more });
const refusal = (answer: Answer) => [answer.body.code, reasonOf(answer)];
const allow = (apiAgents: boolean) => succeeded(home.runner.call("Heartbeat", { apiAgents }));
const planner = async () => (await succeeded(create())).agent;
const run = async (id: string) => (await ok("GetAgentExecution", { agentExecutionId: id })).agentExecution;
const start = async (agentId: string, more: object = {}) =>
  (await ok("StartAgent", { agentId, ...more })).agentExecutionId as string;
const OFF = ["failed_precondition", "PHASE_UNSUITABLE"];

describe("an agent that administrators define", () => {
  test("is off until the operator of a runner allows it", async () => {
    expect(refusal(await create())).toEqual(OFF);
    await allow(true);
    const agent = await planner();
    expect(agent).toMatchObject({ name: "Planner", own: true, default: false, definition });
    const { agents } = await ok("ListAgents", {});
    expect(agents).toContainEqual(agent);
    await allow(false);
    expect(refusal(await call("UpdateAgent", { agentId: agent.id, name: "Thinker" }))).toEqual(OFF);
    expect(refusal(await call("StartAgent", { agentId: agent.id }))).toEqual(OFF);
    const { body } = await call("StartAgent", { agentId: agent.id, runnerId: home.runner.runnerId });
    expect(body.message).toMatch("--allow-api-agents");
    await ok("DeleteAgent", { agentId: agent.id });
    expect(refusal(await call("DeleteAgent", { agentId: agent.id }))).toEqual(["not_found", "NOT_FOUND"]);
  });

  test("reaches programs of runners that take it, and waits for them", async () => {
    await allow(true);
    const id = await start((await planner()).id);
    const both = { kinds: ["WORK_KIND_AGENT"], agentsWithEnvironment: true };
    expect(await home.runner.lease({ ...both, maxLeases: 8 })).toEqual([]);
    expect(await home.runner.lease()).toEqual([]);
    const { agent } = await home.runner.leaseOne({ ...both, apiAgents: true });
    expect(agent).toMatchObject({
      agentExecution: { id },
      command: ["cat", "-u"],
      form: "AGENT_FORM_TEXT",
      variables: { TONE: "calm" },
      apiDefined: true,
    });
  });

  test("fails where its environment is on a runner that takes it no more", async () => {
    await allow(true);
    const { id: agentId } = await planner();
    const id = await start(agentId);
    const work = await home.runner.leaseOne({ kinds: ["WORK_KIND_ENVIRONMENT"], apiAgents: true });
    await succeeded(home.runner.finish(work));
    expect(await home.runner.lease({ kinds: ["WORK_KIND_AGENT"] })).toEqual([]);
    const { status } = await run(id);
    expect(status).toMatchObject({
      phase: "PHASE_STOPPED",
      failureReason: "AGENT_EXECUTION_FAILURE_REASON_SERVICE",
    });
    expect(status.failureMessage).toMatch("--allow-api-agents");
  });

  test("is given again to those that take it when a runner was lost", async () => {
    await allow(true);
    const id = await start((await planner()).id);
    const both = { kinds: ["WORK_KIND_AGENT"], agentsWithEnvironment: true, maxLeases: 8 };
    const work = await home.runner.leaseOne({ ...both, apiAgents: true });
    await succeeded(home.runner.finish(work, "OUTCOME_RELEASED"));
    expect(await home.runner.lease(both)).toEqual([]);
    const again = await home.runner.leaseOne({ ...both, apiAgents: true });
    expect(again).toMatchObject({ attempt: 2, agent: { agentExecution: { id } } });
  });

  test("changes in what is given, and for runs that begin later", async () => {
    await allow(true);
    const { id: agentId } = await planner();
    const rows = async () =>
      (await succeeded(post(server, "EventService/ListAuditLogs", {}, home.token))).entries;
    const recorded = await rows();
    expect((await ok("UpdateAgent", { agentId, definition })).agent).toMatchObject({
      id: agentId,
      definition,
    });
    expect(await rows()).toEqual(recorded);
    const changed = { kind: "AGENT_KIND_ACP", command: "planner", arguments: [], variables: {} };
    expect((await ok("UpdateAgent", { agentId, description: "plans" })).agent).toMatchObject({
      name: "Planner",
      description: "plans",
      definition,
    });
    expect((await ok("UpdateAgent", { agentId, definition: changed })).agent).toMatchObject({
      name: "Planner",
      description: "plans",
      definition: changed,
    });
    await start(agentId);
    const request = { kinds: ["WORK_KIND_AGENT"], agentsWithEnvironment: true, apiAgents: true };
    expect((await home.runner.leaseOne(request)).agent).toMatchObject({
      command: ["planner"],
      form: "AGENT_FORM_ACP",
      variables: {},
    });
  });
});

describe("CreateAgent refuses", () => {
  beforeEach(() => allow(true));

  test.each([
    ["a variable that the runner sets", { PATH: "/bin" }],
    ["a variable of the service", { CHARTROOM_URL: "http://example.org" }],
    ["the name of a secret", { MODEL_API_KEY: "abc" }],
    ["the name of a secret in small letters", { github_token: "abc" }],
  ])("%s", async (_, variables) => {
    const answer = await create({ definition: { ...definition, variables } });
    expect(refusal(answer)).toEqual(["invalid_argument", "VALUE_UNUSABLE"]);
    expect(JSON.stringify(answer.body)).not.toContain("abc");
  });

  test("a name that the organization sees already, and takes it in another one", async () => {
    await planner();
    expect(refusal(await create())).toEqual(["already_exists", "VALUE_TAKEN"]);
    expect(refusal(await create({ name: "coder" }))).toEqual(["already_exists", "VALUE_TAKEN"]);
    home = await createAgentFixture(server);
    await allow(true);
    await planner();
  });

  test("the hundred and first agent of an organization", async () => {
    // The fixture has one of the operator.
    for (let made = 1; made < 100; made++) await succeeded(create({ name: `Planner ${made}` }));
    expect(refusal(await create())).toEqual(OFF);
  });
});

test("what the operator registered is the operator's to change", async () => {
  await allow(true);
  const { agentId } = home;
  expect(refusal(await call("UpdateAgent", { agentId, name: "Mine" }))).toEqual(OFF);
  expect(refusal(await call("DeleteAgent", { agentId }))).toEqual(OFF);
});

test("a runner whose operator allows it runs it with its variables, and says so", async () => {
  const { runnerId } = await startRegisteredHostedRunner(server, { args: ["--allow-api-agents"] });
  const asFirst = (operation: string, body: object) => succeeded(post(server, operation, body));
  const { runner } = await asFirst("RunnerService/GetRunner", { runnerId });
  expect(runner.status.apiAgents).toBe(true);
  const shell = { kind: "AGENT_KIND_TEXT", command: "sh", arguments: ["-c", 'echo "it is $TONE"'] };
  const { agent } = await asFirst("AgentService/CreateAgent", {
    name: "Shell",
    definition: { ...shell, variables: { TONE: "calm" } },
  });
  const { agentExecutionId } = await asFirst("AgentService/StartAgent", {
    agentId: agent.id,
    userInput: { inputs: [{ text: { content: "how is it?" } }] },
  });
  const { blocks } = await until(
    () => asFirst("AgentService/ListAgentOutputBlocks", { agentExecutionId }),
    ({ blocks }) => blocks.length > 0,
  );
  expect(blocks[0].text.content).toBe("it is calm\n");
});

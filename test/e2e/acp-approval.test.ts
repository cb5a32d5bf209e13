import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, expect, test } from "@jest/globals";
import { addDefaultAgent } from "../harness/added-agent.ts";
import { closeConversations, startConversation } from "../harness/agent-conversation.ts";
import { approvals, decide, onlyPending } from "../harness/approvals.ts";
import { post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { expireAllLeases, LONG_LEASES } from "../harness/lease.ts";
import {
  startHostedRunner,
  startRegisteredHostedRunner,
  startRegisteredRunner,
  stopRunners,
} from "../harness/runner-process.ts";
import { ACP_AGENT, call } from "../harness/scripted-acp-agent.ts";
import {
  type HostedOptions,
  type ReachableServer,
  startHostedServer,
  startServer,
  stopAll,
} from "../harness/server.ts";
import { startServerProxy } from "../harness/server-proxy.ts";
import { until } from "../harness/until.ts";

afterEach(async () => {
  closeConversations();
  await stopRunners();
});
afterAll(stopAll);

async function place<Server extends ReachableServer>(
  start: (options: HostedOptions) => Promise<Server>,
): Promise<Server> {
  const server = await start({ args: LONG_LEASES });
  const command = [process.execPath, ACP_AGENT, JSON.stringify({ resume: true })];
  await addDefaultAgent(server, "scripted", "acp", command);
  return server;
}

const options = [
  { optionId: "always", name: "Always", kind: "allow_always" },
  { optionId: "once", name: "Once", kind: "allow_once" },
  { optionId: "no", name: "No", kind: "reject_once" },
];
/** Asks for the permission to do something, and says the outcome. */
const asking = (toolCallId: string, kind: string, command: string) =>
  call("session/request_permission", {
    toolCall: { toolCallId, title: command, name: "shell", kind, rawInput: { command } },
    options,
  });
const selected = (optionId: string) => `{"outcome":{"outcome":"selected","optionId":"${optionId}"}}`;
const CANCELLED = '{"outcome":{"outcome":"cancelled"}}';

type Conversation = Awaited<ReturnType<typeof startConversation>>;

/** Returns what was reported about a tool call's state, in order. */
const statesOf = (conversation: Conversation, id: string) =>
  conversation.blocks.flatMap(({ block }) =>
    block.case === "toolCall" && block.value.id === id && block.value.state !== 0 ? block.value.state : [],
  );
const [PENDING, WAITING, FAILED] = [1, 2, 5];
const words = ({ blocks }: Conversation) =>
  blocks.map(({ block }) => (block.case === "text" ? block.value.content : "")).join("");

test("an agent asks for tool calls, and goes on by what the policy and people say", async () => {
  const server = await place(startHostedServer);
  await startRegisteredHostedRunner(server);
  const rule = { kinds: ["TOOL_KIND_FETCH"], effect: "EFFECT_DENY", reason: "no network" };
  const { organizationId } = await succeeded(post(server, "IdentityService/GetAuthenticatedIdentity", {}));
  const agentPolicy = { approvals: { rules: [rule] } };
  await succeeded(
    post(server, "OrganizationService/UpdateOrganizationPolicies", { organizationId, agentPolicy }),
  );
  const conversation = await startConversation(server);
  await conversation.say(
    "one",
    [
      asking("read", "read", "cat page"),
      asking("fetch", "fetch", "curl page"),
      asking("make", "execute", "make"),
      asking("make again", "execute", "make"),
      asking("rm", "delete", "rm page"),
    ].join("\n"),
  );
  const make = await onlyPending(server);
  expect(make).toMatchObject({
    title: "make",
    requestJson:
      '{"input":"{\\"command\\":\\"make\\"}","kind":"TOOL_KIND_EXECUTE","title":"make","tool":"shell"}',
    asker: { agentExecutionId: conversation.id, toolCallId: "make" },
    options: [{ id: "always" }, { id: "once" }, { id: "no" }],
  });
  await until(
    () => statesOf(conversation, "make"),
    (states) => states.at(-1) === WAITING,
  );
  await decide(server, make, { optionId: "always" });
  await until(
    () => onlyPending(server),
    ({ asker }) => asker.toolCallId === "make again",
  );
  await decide(server, await onlyPending(server));
  await until(
    () => onlyPending(server),
    ({ asker }) => asker.toolCallId === "rm",
  );
  await decide(server, await onlyPending(server), { decision: "DECISION_DENY", reason: "keep it" });
  await conversation.untilIdle();
  expect(words(conversation).trimEnd().split("\n")).toEqual(
    ["once", "no", "always", "once", "no"].map(selected),
  );
  expect(conversation.output().filter((line) => line.startsWith("error: "))).toEqual([
    "error: the tool call curl page was denied: no network",
    "error: the tool call rm page was denied: keep it",
  ]);
  expect(statesOf(conversation, "read")).toEqual([]);
  expect(statesOf(conversation, "make")).toEqual([WAITING, PENDING]);
  expect(statesOf(conversation, "rm")).toEqual([WAITING, FAILED]);
});

test("a question is answered by a person, and a command is carried out once somebody approves it", async () => {
  const server = await place(startHostedServer);
  await startRegisteredHostedRunner(server);
  const conversation = await startConversation(server);
  const requestedSchema = { type: "object", properties: { port: { type: "integer" } }, required: ["port"] };
  const file = join(server.dataDir, "made");
  await conversation.say(
    "one",
    [
      call("elicitation/create", { mode: "form", message: "Which port?", requestedSchema }),
      `run ${JSON.stringify({ command: "touch", args: [file] })}`,
    ].join("\n"),
  );
  const question = await onlyPending(server);
  expect(question).toMatchObject({ kind: "APPROVAL_KIND_QUESTION", title: "Which port?" });
  expect(JSON.parse(JSON.parse(question.requestJson).schemaJson)).toEqual(requestedSchema);
  await decide(server, question, { answerJson: '{"port":8080}' });
  const command = await until(
    () => onlyPending(server),
    ({ kind }) => kind === "APPROVAL_KIND_TOOL_CALL",
  );
  expect(command).toMatchObject({ title: `Run touch ${file}` });
  expect(existsSync(file)).toBe(false);
  await decide(server, command);
  await conversation.untilIdle();
  expect(words(conversation)).toBe('{"action":"accept","content":{"port":8080}}\n0 null\n');
  expect(readFileSync(file, "utf8")).toBe("");
});

test("a turn that is cancelled while somebody is asked cancels what it has asked for", async () => {
  const server = await place(startHostedServer);
  await startRegisteredHostedRunner(server);
  const conversation = await startConversation(server);
  await conversation.say("one", asking("make", "execute", "make"));
  const asked = await onlyPending(server);
  await until(
    () => statesOf(conversation, "make"),
    (states) => states.at(-1) === WAITING,
  );
  const steer = async (id: string, line: string) => {
    await conversation.say(id, line);
    await conversation.send({ controlInput: { steerQueuedMessage: { userInputId: id } } });
  };
  await steer("two", "slow");
  await conversation.untilOutput("working");
  // Nobody is asked any more, although the run goes on with its next turn.
  await until(
    () => approvals(server),
    ([{ state }]) => state === "APPROVAL_STATE_CANCELLED",
  );
  expect((await conversation.get()).status).toMatchObject({ phase: "PHASE_RUNNING", pendingApprovalIds: [] });
  expect(words(conversation)).toContain(CANCELLED);
  expect(statesOf(conversation, "make")).toEqual([WAITING, FAILED]);
  await steer("three", asking("stop", "execute", "make"));
  const last = await onlyPending(server);
  expect(last.id).not.toBe(asked.id);
  await conversation.stop();
  await conversation.untilPhase("STOPPED");
  expect((await approvals(server, "APPROVAL_STATE_CANCELLED")).map(({ id }) => id)).toContain(last.id);
});

test("a runner that is killed while somebody is asked loses nothing, and asks nobody again", async () => {
  const server = await place(startHostedServer);
  const { kill, stateDir } = await startRegisteredRunner(server);
  const conversation = await startConversation(server);
  await conversation.say("one", asking("make", "execute", "make"));
  const asked = await onlyPending(server);
  await conversation.untilSeen("one");
  await kill();
  await expireAllLeases(server);
  expect((await onlyPending(server)).id).toBe(asked.id);
  await startHostedRunner(server, { stateDir });
  // The agent goes on with its session, and asks for what it still wants to do.
  await conversation.say("two", asking("make", "execute", "make"));
  await conversation.untilSeen("two");
  await decide(server, await onlyPending(server));
  await conversation.untilIdle();
  expect(words(conversation)).toBe(`${selected("once")}\n`);
  expect((await approvals(server)).map(({ id }) => id)).toEqual([asked.id]);
});

test("a server that is killed while somebody is asked, and once more after the decision, loses nothing", async () => {
  const first = await place(startServer);
  const { token } = first;
  const proxy = await startServerProxy(first);
  await startRegisteredHostedRunner({ ...first, url: proxy.url });
  const conversation = await startConversation({ url: proxy.url, token });
  await conversation.say("one", asking("make", "execute", "make"));
  const asked = await onlyPending(first);
  await first.kill();
  // While the proxy leads nowhere the runner does not hear of the decision.
  const second = { ...(await startServer({ dataDir: first.dataDir, args: LONG_LEASES })), token };
  await decide(second, await onlyPending(second));
  await second.kill();
  const third = { ...(await startHostedServer({ dataDir: first.dataDir, args: LONG_LEASES })), token };
  proxy.forwardTo(third);
  await conversation.untilIdle();
  expect(words(conversation)).toBe(`${selected("once")}\n`);
  expect((await approvals(third)).map(({ id }) => id)).toEqual([asked.id]);
  await proxy.stop();
});

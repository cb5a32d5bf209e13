import { join } from "node:path";
import { afterAll, afterEach, expect, test } from "@jest/globals";
import { addScriptedAgent, closeConversations, startConversation } from "../harness/agent-conversation.ts";
import { approvals, decide, onlyPending } from "../harness/approvals.ts";
import { expireAllLeases, LONG_LEASES } from "../harness/lease.ts";
import {
  startHostedRunner,
  startRegisteredHostedRunner,
  startRegisteredRunner,
  stopRunners,
} from "../harness/runner-process.ts";
import {
  type HostedOptions,
  type ReachableServer,
  startHostedServer,
  startServer,
  stopAll,
  temporaryFolder,
} from "../harness/server.ts";
import { startServerProxy } from "../harness/server-proxy.ts";

afterEach(async () => {
  closeConversations();
  await stopRunners();
});
afterAll(stopAll);

async function place<Server extends ReachableServer>(
  start: (options: HostedOptions) => Promise<Server>,
): Promise<Server> {
  const server = await start({ args: LONG_LEASES });
  await addScriptedAgent(server, join(temporaryFolder(), "got"));
  return server;
}

test("an agent asks, and learns in its turn what people and the policy have decided", async () => {
  const server = await place(startHostedServer);
  await startRegisteredHostedRunner(server);
  const conversation = await startConversation(server);
  await conversation.say(
    "one",
    "ask r read the page\nask x execute make\necho between\nask y delete all\nquestion q Which port?",
  );
  const make = await onlyPending(server);
  expect(make).toMatchObject({
    kind: "APPROVAL_KIND_TOOL_CALL",
    title: "make",
    requestJson:
      '{"input":"{\\"words\\":\\"make\\"}","kind":"TOOL_KIND_EXECUTE","title":"make","tool":"execute"}',
    asker: { agentExecutionId: conversation.id, toolCallId: "x" },
  });
  expect((await conversation.get()).status).toMatchObject({
    phase: "PHASE_RUNNING",
    pendingApprovalIds: [make.id],
  });
  await decide(server, make);
  await conversation.untilOutput("between");
  await decide(server, await onlyPending(server), { decision: "DECISION_DENY", reason: "too much" });
  await decide(server, await onlyPending(server), { answerJson: '{"port":8080}' });
  await conversation.untilIdle();
  expect(conversation.output()).toEqual([
    "r: is allowed: yes",
    "x: is allowed: yes",
    "between",
    "y: is not allowed: no: too much",
    'q: {"port":8080}',
  ]);
  expect((await conversation.get()).status.pendingApprovalIds).toEqual([]);
  // All of it belongs to the turn that the message began.
  expect(new Set(conversation.blocks.map(({ inputId }) => inputId))).toEqual(new Set(["one"]));
});

test("a server that is killed while somebody is asked, and once more after the decision, loses nothing", async () => {
  const first = await place(startServer);
  const { token } = first;
  const proxy = await startServerProxy(first);
  await startRegisteredHostedRunner({ ...first, url: proxy.url });
  const conversation = await startConversation({ url: proxy.url, token });
  await conversation.say("one", "ask x execute make");
  const asked = await onlyPending(first);
  await first.kill();
  // While the proxy leads nowhere the runner does not hear of the decision.
  const second = { ...(await startServer({ dataDir: first.dataDir, args: LONG_LEASES })), token };
  expect((await onlyPending(second)).id).toBe(asked.id);
  await decide(second, asked);
  await second.kill();
  const third = { ...(await startHostedServer({ dataDir: first.dataDir, args: LONG_LEASES })), token };
  proxy.forwardTo(third);
  await conversation.untilOutput("x: is allowed: yes");
  await conversation.untilIdle();
  expect(await approvals(third)).toHaveLength(1);
  await proxy.stop();
});

test("a runner that is lost while somebody is asked does not ask again", async () => {
  const server = await place(startHostedServer);
  const { kill, stateDir } = await startRegisteredRunner(server);
  const conversation = await startConversation(server);
  await conversation.say("one", "ask x execute make");
  const asked = await onlyPending(server);
  await conversation.untilSeen("one");
  await kill();
  await expireAllLeases(server);
  expect((await onlyPending(server)).id).toBe(asked.id);
  await startHostedRunner(server, { stateDir });
  // The new process of the agent knows nothing of the turn; it asks for the same again.
  await conversation.say("two", "ask x execute make");
  await conversation.untilSeen("two");
  expect((await onlyPending(server)).id).toBe(asked.id);
  await decide(server, asked);
  await conversation.untilOutput("x: is allowed: yes");
  await conversation.untilIdle();
  expect(await approvals(server)).toHaveLength(1);
});

test("a decision that comes while no runner holds the run is there for the next", async () => {
  const server = await place(startHostedServer);
  const { kill, stateDir } = await startRegisteredRunner(server);
  const conversation = await startConversation(server);
  await conversation.say("one", "ask x execute make");
  const asked = await onlyPending(server);
  await conversation.untilSeen("one");
  await kill();
  await expireAllLeases(server);
  await decide(server, asked);
  await startHostedRunner(server, { stateDir });
  await conversation.say("two", "ask x execute make");
  await conversation.untilOutput("x: is allowed: yes");
  await conversation.untilIdle();
  const outcomes = (await conversation.inputs()).filter((input) => input.approval);
  expect(outcomes).toMatchObject([
    { receipt: "AGENT_INPUT_RECEIPT_SEEN", approval: { approvalId: asked.id } },
  ]);
});

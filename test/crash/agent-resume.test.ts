import { join } from "node:path";
import { afterAll, afterEach, expect, test } from "@jest/globals";
import { addDefaultAgent } from "../harness/added-agent.ts";
import {
  addScriptedAgent,
  type Conversation,
  closeConversations,
  conversationOf,
  startConversation,
} from "../harness/agent-conversation.ts";
import { post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { expireAllLeases, LONG_LEASES } from "../harness/lease.ts";
import { ROOT } from "../harness/program.ts";
import {
  startHostedRunner,
  startRegisteredHostedRunner,
  startRegisteredRunner,
  stopRunners,
} from "../harness/runner-process.ts";
import {
  type ReachableServer,
  startHostedServer,
  startServer,
  stopAll,
  temporaryFolder,
} from "../harness/server.ts";
import { startServerProxy } from "../harness/server-proxy.ts";
import { until } from "../harness/until.ts";

afterEach(async () => {
  closeConversations();
  await stopRunners();
});
afterAll(stopAll);

const PROGRAM = join(ROOT, "test/harness/acp-agent.ts");

const addAcpAgent = (server: ReachableServer, options: object) =>
  addDefaultAgent(server, "acp", "acp", [process.execPath, PROGRAM, JSON.stringify(options)]);

async function stopped(conversation: Conversation): Promise<Conversation> {
  await conversation.stop();
  await conversation.untilPhase("STOPPED");
  return conversation;
}
const resume = (place: Pick<ReachableServer, "url" | "token">, { id }: Conversation, more: object = {}) =>
  startConversation(place, { resumeFrom: id, ...more });
const says = (content: string) => ({ userInput: { inputs: [{ text: { content } }] } });

/** Returns the blocks of a run as the list shows them, in pages of one, as numbers and texts. */
async function listed(server: ReachableServer, { id }: Conversation): Promise<string[]> {
  const blocks: string[] = [];
  for (let token = ""; ; ) {
    const request = { agentExecutionId: id, pagination: { pageSize: 1, token } };
    const page = await succeeded(post(server, "AgentService/ListAgentOutputBlocks", request));
    for (const { sequence, text, error } of page.blocks)
      blocks.push(`${sequence} ${text ? text.content.trimEnd() : error.message}`);
    token = page.pagination.nextToken;
    if (token === "") return blocks;
  }
}

test.each([["resume"], ["load"]])(
  "an agent of the protocol goes on with the session of a stopped run by session/%s, and with its blocks",
  async (ability) => {
    const server = await startHostedServer({ args: LONG_LEASES });
    await addAcpAgent(server, { [ability]: true });
    await startRegisteredHostedRunner(server);
    const first = await startConversation(server, { name: "Fix it", ...says("echo the first words") });
    await first.untilOutput("the first words");
    const second = await resume(server, await stopped(first), says("remember"));
    await second.untilOutput("echo the first words");
    await second.say("show", "show");
    await until(second.output, (said) => said.some((words) => words.startsWith(`initialize`)));
    expect(second.output().at(-1)).toMatch(new RegExp(`^${ability} `, "m"));
    const third = await resume(server, await stopped(second), says("echo the last words"));
    await third.untilOutput("the last words");
    const blocks = ["1 the first words", "2 echo the first words", "3 initialize", "4 the last words"];
    expect((await listed(server, third)).map((block) => block.split(" [")[0])).toEqual(blocks);
    expect(third.blocks.map(({ sequence }) => Number(sequence))).toEqual([1, 2, 3, 4]);
    const { metadata, status } = await third.get();
    expect(metadata).toMatchObject({
      name: "Fix it",
      resumedFrom: second.id,
      conversationId: first.id,
      earlierSequence: "3",
    });
    const before = await first.get();
    expect(metadata.sessionId).toBe(before.metadata.sessionId);
    expect(status.usedEnvironments[0].environmentId).toBe(before.status.usedEnvironments[0].environmentId);
    // What was deleted is gone from the conversation; the rest keeps its numbers.
    await succeeded(post(server, "AgentService/DeleteAgentExecution", { agentExecutionId: second.id }));
    expect(await listed(server, third)).toEqual(["4 the last words"]);
  },
);

test("a run whose agent cannot go on with the session fails and says so", async () => {
  const server = await startHostedServer({ args: LONG_LEASES });
  await addAcpAgent(server, {});
  await startRegisteredHostedRunner(server);
  const first = await startConversation(server, says("echo words"));
  await first.untilOutput("words");
  const second = await resume(server, await stopped(first), says("echo more"));
  const { status } = await second.untilPhase("STOPPED");
  expect(status.failureMessage).toBe(
    "the agent cannot go on with the session of the run that was resumed, start another run in the environment: it offers no way to",
  );
});

test("an agent of JSON lines receives the conversation that it goes on with", async () => {
  const server = await startHostedServer({ args: LONG_LEASES });
  await addScriptedAgent(server, join(temporaryFolder(), "got"));
  await startRegisteredHostedRunner(server);
  const first = await startConversation(server, says("echo one"));
  await first.untilOutput("one");
  const second = await resume(server, await stopped(first), says("show"));
  await until(second.output, (said) => said.length > 1);
  expect(JSON.parse(second.output().at(-1) ?? "")).toMatchObject({
    runId: second.id,
    resumedFrom: first.id,
    conversationId: first.id,
    starts: 2,
  });
});

test("a program of plain text goes on by the recipe of the page", async () => {
  const server = await startHostedServer({ args: LONG_LEASES });
  // It keeps conversations in files of its HOME, by the names that it is given.
  const coder = 'cd && case $2 in --session) : > "$3";; esac && cat >> "$3" && cat "$3"';
  const recipe =
    'if [ "$CHARTROOM_AGENT_STARTS" = 1 ]; then set -- --session; else set -- --resume; fi; ' +
    `exec sh -c '${coder.replaceAll("'", `'\\''`)}' coder --print "$@" "$CHARTROOM_AGENT_CONVERSATION_ID"`;
  await addDefaultAgent(server, "text", "text", ["sh", "-c", recipe]);
  await startRegisteredHostedRunner(server);
  const first = await startConversation(server, says("one\n"));
  await first.untilOutput("one");
  await first.untilIdle();
  const second = await resume(server, await stopped(first), says("two\n"));
  await second.untilOutput("one\ntwo");
});

test("a run goes on although its runner is killed in the middle of the resumption", async () => {
  const server = await startHostedServer({ args: LONG_LEASES });
  await addAcpAgent(server, { resume: true });
  const { stateDir, kill } = await startRegisteredRunner(server);
  const first = await startConversation(server, says("echo the first words"));
  await first.untilOutput("the first words");
  const second = await resume(server, await stopped(first), says("slow"));
  await second.untilOutput("working");
  await kill();
  await expireAllLeases(server);
  await startHostedRunner(server, { stateDir });
  await second.say("again", "remember");
  await second.untilOutput("echo the first words");
  await second.untilIdle();
  expect(second.output()).toEqual([
    "the first words",
    "working",
    "error: the runner was lost in the middle of a turn",
    "echo the first words",
  ]);
});

test("a run goes on although the server is killed in the middle of the resumption", async () => {
  const server = await startServer({ args: LONG_LEASES });
  await addAcpAgent(server, { load: true });
  const proxy = await startServerProxy(server);
  const place = { url: proxy.url, token: server.token };
  const runner = await startRegisteredRunner({ ...server, url: proxy.url });
  const first = await startConversation(place, says("echo the first words"));
  await first.untilOutput("the first words");
  await runner.kill();
  await first.stop();
  await expireAllLeases(server);
  await first.untilPhase("STOPPED");
  const second = await resume(place, first, says("remember"));
  await server.kill();
  proxy.forwardTo(await startServer({ dataDir: server.dataDir, args: LONG_LEASES }));
  await startHostedRunner({ url: proxy.url }, { stateDir: runner.stateDir });
  await second.untilOutput("echo the first words");
  await second.untilIdle();
  expect(second.output()).toEqual(["the first words", "echo the first words"]);
  expect((await second.inputs()).map(({ receipt }) => receipt)).toEqual(["AGENT_INPUT_RECEIPT_SEEN"]);
  await proxy.stop();
});

test("a run is resumed once, and each refusal says what to do", async () => {
  const server = await startHostedServer({ args: LONG_LEASES });
  await addScriptedAgent(server, join(temporaryFolder(), "got"));
  const first = await startConversation(server);
  const answer = async (request: object) => {
    const { body } = await post(server, "AgentService/StartAgent", request);
    return `${body.code}: ${body.message}`;
  };
  const from = { resumeFrom: first.id };
  expect(await answer(from)).toMatch(/^failed_precondition: .*send to it, or stop it/);
  await stopped(first);
  const none = "01900000-0000-7000-8000-000000000000";
  expect(await answer({ ...from, agentId: none })).toMatch(/^invalid_argument: .*leave agentId out/);
  expect(await answer({ ...from, sessionId: none })).toMatch(
    /^invalid_argument: sessionId is that of the run to resume/,
  );
  expect(await answer({ resumeFrom: none })).toBe("not_found: agent execution not found");
  const second = await resume(server, first);
  expect(await answer(from)).toBe(
    `failed_precondition: the agent run was resumed as ${second.id}: go on with that one`,
  );
  await stopped(second);
  expect(await answer(from)).toMatch(/was resumed as/);
  await succeeded(post(server, "AgentService/DeleteAgentExecution", { agentExecutionId: second.id }));
  const third = await stopped(await resume(server, first));
  await succeeded(post(server, "AgentService/DeleteAgentExecution", { agentExecutionId: first.id }));
  expect(await answer({ resumeFrom: third.id })).toMatch(
    /^failed_precondition: the environment of the agent run is deleted/,
  );
  expect(conversationOf(server, third.id).output()).toEqual([]);
});

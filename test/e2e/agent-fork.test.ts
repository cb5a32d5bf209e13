import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { afterAll, afterEach, expect, test } from "@jest/globals";
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
  type HostedServer,
  runCommand,
  runHostedCommand,
  startHostedServer,
  stopAll,
  temporaryFolder,
} from "../harness/server.ts";
import { until } from "../harness/until.ts";

afterEach(async () => {
  closeConversations();
  await stopRunners();
});
afterAll(stopAll);

async function addAgent(server: HostedServer, form: string, ...command: readonly string[]): Promise<void> {
  const words = JSON.stringify([process.execPath, join(ROOT, command[0] ?? ""), ...command.slice(1)]);
  const options = ["--form", form, "--command", words, "--default", "--data-dir", server.dataDir];
  const { code, stderr } = await runHostedCommand(["agent", "add", form, ...options]);
  expect([code, stderr]).toEqual([0, ""]);
}
const addAcpAgent = (server: HostedServer, options: object) =>
  addAgent(server, "acp", "test/harness/acp-agent.ts", JSON.stringify(options));
const says = (content: string) => ({ userInput: { inputs: [{ text: { content } }] } });

async function fork(server: HostedServer, { id }: Conversation, more: object = {}): Promise<Conversation> {
  const request = { agentExecutionId: id, ...more };
  const { agentExecutionId } = await succeeded(post(server, "AgentService/ForkAgentExecution", request));
  return conversationOf(server, agentExecutionId);
}
async function refusal(server: HostedServer, { id }: Conversation, more: object = {}): Promise<string> {
  const { body } = await post(server, "AgentService/ForkAgentExecution", { agentExecutionId: id, ...more });
  return `${body.code}: ${body.message}`;
}
const ability = async (conversation: Conversation) => (await conversation.get()).status.forkAbility;
const numbered = ({ blocks, output }: Conversation) =>
  blocks.map(({ sequence }, index) => `${sequence} ${output()[index]}`);

test("an agent of JSON lines forks any turn of a conversation, which goes on untouched", async () => {
  const server = await startHostedServer({ args: LONG_LEASES });
  await addAgent(server, "json-lines", "test/harness/forking-agent.ts");
  const runner = await startRegisteredRunner(server);
  const first = await startConversation(server, { name: "Fix it", holdAfterLostTurn: true });
  for (const words of ["one", "two", "three"]) {
    await first.say(words, words);
    await first.untilIdle();
  }
  expect(await ability(first)).toBe("AGENT_FORK_ABILITY_ANY_TURN");
  const branch = await fork(server, first, { sequence: "2", ...says("other") });
  await branch.untilOutput("one, two, other");
  expect(numbered(branch)).toEqual(["1 one", "2 one, two", "3 one, two, other"]);
  const { metadata, spec } = await branch.get();
  expect(metadata).toMatchObject({ name: "Fix it", forkedFrom: first.id, earlierSequence: "2" });
  expect([metadata.resumedFrom, metadata.conversationId]).toEqual(["", ""]);
  expect(spec.holdAfterLostTurn).toBe(true);
  // Both go on, each by itself, and forks of forks as well.
  await first.say("four", "four");
  await first.untilOutput("one, two, three, four");
  await branch.untilIdle();
  const ofBranch = await fork(server, branch, says("further"));
  await ofBranch.untilOutput("one, two, other, further");
  const early = await fork(server, branch, { sequence: "1", ...says("elsewhere") });
  await early.untilOutput("one, elsewhere");
  // A fork is resumed like any other run, and its runner may be lost.
  await runner.kill();
  await expireAllLeases(server);
  await startHostedRunner(server, { stateDir: runner.stateDir });
  await branch.say("again", "again");
  await branch.untilOutput("one, two, other, again");
  await branch.stop();
  await branch.untilPhase("STOPPED");
  const resumed = await startConversation(server, { resumeFrom: branch.id, ...says("last") });
  await resumed.untilOutput("one, two, other, again, last");
  const ofEarlier = await fork(server, resumed, { sequence: "3", ...says("new") });
  await ofEarlier.untilOutput("one, two, other, new");
  expect(first.output()).toEqual(["one", "one, two", "one, two, three", "one, two, three, four"]);
});

test("an agent of the protocol forks its session from the end, also of a run that has stopped", async () => {
  const server = await startHostedServer({ args: LONG_LEASES });
  await addAcpAgent(server, { fork: true, resume: true });
  await startRegisteredHostedRunner(server);
  const first = await startConversation(server, says("echo one"));
  await first.untilOutput("one");
  await first.untilIdle();
  expect(await ability(first)).toBe("AGENT_FORK_ABILITY_LATEST");
  expect(await refusal(server, first, { sequence: "2" })).toMatch(
    /^invalid_argument: .*higher than the last number/,
  );
  const branch = await fork(server, first, says("recall"));
  await branch.untilOutput("echo one, recall");
  await first.say("two", "echo two");
  await first.untilOutput("two");
  await first.untilIdle();
  expect(await refusal(server, first, { sequence: "1" })).toMatch(/^failed_precondition: .*at its end only/);
  await first.say("slow", "slow");
  await first.untilOutput("working");
  expect(await refusal(server, first)).toMatch(/^failed_precondition: a turn of the agent run goes on/);
  await branch.say("more", "recall");
  await branch.untilOutput("echo one, recall, recall");
  expect(numbered(branch)).toEqual(["1 one", "2 echo one, recall", "3 echo one, recall, recall"]);
  await branch.untilIdle();
  await branch.stop();
  await branch.untilPhase("STOPPED");
  const second = await fork(server, branch, says("recall"));
  await second.untilOutput("echo one, recall, recall, recall");
  const resumed = await startConversation(server, { resumeFrom: branch.id });
  expect(await refusal(server, branch)).toBe(
    `failed_precondition: the agent run was resumed as ${resumed.id}: fork that one`,
  );
});

test("a fork fails, and says so, where the run has gone on before its agent has forked", async () => {
  const server = await startHostedServer({ args: LONG_LEASES });
  await addAcpAgent(server, { fork: true });
  // One slot: the fork waits for it.
  await startRegisteredHostedRunner(server, { args: ["--agent-slots", "1"] });
  const first = await startConversation(server, says("echo one"));
  await first.untilOutput("one");
  await first.untilIdle();
  const late = await fork(server, first, says("recall"));
  await first.say("two", "echo two");
  await first.untilOutput("two");
  await first.untilIdle();
  await first.stop();
  const { status } = await late.untilPhase("STOPPED");
  expect(status.failureMessage).toBe(
    "the agent could not fork the conversation: the run that was forked has gone on since: fork it again",
  );
});

test("what an agent cannot do is refused with the reason", async () => {
  const server = await startHostedServer({ args: LONG_LEASES });
  await addAcpAgent(server, {});
  await startRegisteredHostedRunner(server);
  const first = await startConversation(server);
  await first.untilPhase("WAITING_FOR_INPUT");
  await until(
    () => refusal(server, first),
    (why) => why === "failed_precondition: the agent of the run cannot fork a conversation",
  );
  expect(await refusal(server, { ...first, id: "01900000-0000-7000-8000-000000000000" })).toBe(
    "not_found: agent execution not found",
  );
});

test("a run of another kind of agent says nothing of forks, and the command tells why", async () => {
  const server = await startHostedServer({ args: LONG_LEASES });
  await addScriptedAgent(server, join(temporaryFolder(), "got"));
  await startRegisteredHostedRunner(server);
  const first = await startConversation(server, says("echo one"));
  await first.untilOutput("one");
  const settings = { CHARTROOM_SERVER: server.url, CHARTROOM_TOKEN: server.token };
  const { code, stderr } = await runCommand(["run", "fork", first.id, "go on"], settings);
  expect([code, stderr]).toEqual([1, expect.stringContaining("has not reported that it can fork")]);
});

test("100 forks under one idempotency key are one, and the command makes another", async () => {
  const server = await startHostedServer({ args: LONG_LEASES });
  await addAgent(server, "json-lines", "test/harness/forking-agent.ts");
  await startRegisteredHostedRunner(server);
  const first = await startConversation(server);
  await first.say("one", "one");
  await first.untilIdle();
  const request = { agentExecutionId: first.id };
  const headers = { "idempotency-key": randomUUID() };
  const answers = await Promise.all(
    Array.from({ length: 100 }, () =>
      succeeded(post(server, "AgentService/ForkAgentExecution", request, undefined, headers)),
    ),
  );
  expect(new Set(answers.map(({ agentExecutionId }) => agentExecutionId)).size).toBe(1);
  const settings = { CHARTROOM_SERVER: server.url, CHARTROOM_TOKEN: server.token };
  const args = ["run", "fork", first.id, "two", "--sequence", "1", "--watch", "--until-waiting"];
  const { code, stdout, stderr } = await runCommand(args, settings);
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(/^[0-9a-f-]{36}\n.*one, two\n/s);
  const { agentExecutions } = await succeeded(post(server, "AgentService/ListAgentExecutions"));
  expect(agentExecutions).toHaveLength(3);
});

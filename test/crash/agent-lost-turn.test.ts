import { join } from "node:path";
import { afterAll, afterEach, expect, test } from "@jest/globals";
import {
  addScriptedAgent,
  type Conversation,
  closeConversations,
  receivedInputs,
  startConversation,
} from "../harness/agent-conversation.ts";
import { expireAllLeases, LONG_LEASES } from "../harness/lease.ts";
import { ROOT } from "../harness/program.ts";
import { startHostedRunner, startRegisteredRunner, stopRunners } from "../harness/runner-process.ts";
import {
  type ReachableServer,
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

const LOST = "error: the runner was lost in the middle of a turn";

/** Starts a run that loses a turn with its runner, which comes back; with a message that waits. */
async function recordLostTurn(server: ReachableServer, options: object): Promise<Conversation> {
  const runner = await startRegisteredRunner(server);
  const conversation = await startConversation(server, options);
  await conversation.say("first", "echo before");
  await conversation.untilOutput("before");
  await conversation.say("long", "slow 1000\necho done");
  await until(conversation.output, (said) => said.some((words) => /^(step 1|working)$/.test(words)));
  await conversation.say("next", "echo next");
  await runner.kill();
  await expireAllLeases(server);
  await startHostedRunner(server, { stateDir: runner.stateDir });
  return conversation;
}

const command = (server: ReachableServer, ...args: readonly string[]) =>
  runCommand(["run", ...args], { CHARTROOM_SERVER: server.url, CHARTROOM_TOKEN: server.token });

test("a turn that is lost with its runner is asked for again, by the command, and the queue holds until then", async () => {
  const server = await startHostedServer({ args: LONG_LEASES });
  const logFile = join(temporaryFolder(), "got");
  await addScriptedAgent(server, logFile);
  const conversation = await recordLostTurn(server, { holdAfterLostTurn: true });
  await conversation.untilPhase("WAITING_FOR_INPUT");
  const { status } = await conversation.get();
  expect(status.lostTurn).toMatchObject({ inputId: "long", holdsQueue: true });
  const watched = await command(server, "watch", conversation.id, "--until-waiting");
  expect(watched.stdout).toContain(
    `goes on without it: chartroom run retry-turn ${conversation.id}, or chartroom run go-on ${conversation.id}`,
  );
  await conversation.say("enough", "enough");
  expect(await command(server, "retry-turn", conversation.id)).toMatchObject({ code: 0, stderr: "" });
  await until(conversation.output, (said) => said.lastIndexOf("step 1") > said.indexOf(LOST));
  await conversation.send({ controlInput: { steerQueuedMessage: { userInputId: "enough" } } });
  await conversation.untilOutput("next");
  await conversation.untilIdle();
  const said = conversation.output().filter((words) => !words.startsWith("step "));
  expect(said).toEqual(["before", LOST, "steered: enough", "done", "next"]);
  expect(receivedInputs(conversation.id, logFile).map(({ id }) => id)).toEqual([
    ...["first", "long", "long", "enough", "next"],
  ]);
  expect((await conversation.inputs()).map(({ id, receipt }) => `${id} ${receipt}`)).toEqual(
    ["first", "long", "next", "enough"].map((id) => `${id} AGENT_INPUT_RECEIPT_SEEN`),
  );
  const blocksOfLong = conversation.blocks.filter(({ inputId }) => inputId === "long");
  expect(blocksOfLong.filter(({ block }) => block.case === "error")).toHaveLength(1);
});

test("an agent of the protocol is asked again for a lost turn, or goes on without it", async () => {
  const server = await startHostedServer({ args: LONG_LEASES });
  const program = JSON.stringify([
    process.execPath,
    join(ROOT, "test/harness/acp-agent.ts"),
    JSON.stringify({ resume: true }),
  ]);
  const options = ["--form", "acp", "--command", program, "--default", "--data-dir", server.dataDir];
  expect((await runHostedCommand(["agent", "add", "acp", ...options])).code).toBe(0);
  const conversation = await recordLostTurn(server, { holdAfterLostTurn: true });
  await conversation.untilPhase("WAITING_FOR_INPUT");
  await conversation.send({ controlInput: { retryTurn: {} } });
  await until(conversation.output, (said) => said.filter((words) => words === "working").length === 2);
  expect((await conversation.get()).status.lostTurn).toBeUndefined();
  await conversation.send({ controlInput: { steerQueuedMessage: { userInputId: "next" } } });
  await conversation.untilOutput("next");
  await conversation.untilIdle();
  expect(conversation.output()).toEqual(["before", "working", LOST, "working", "cancelled", "next"]);
  const other = await command(server, "go-on", conversation.id);
  expect([other.code, other.stderr]).toEqual([1, expect.stringContaining("has lost no turn")]);
});

test("who approves what a lost turn has asked for reads which command asks for the turn again", async () => {
  const server = await startHostedServer({ args: LONG_LEASES });
  await addScriptedAgent(server, join(temporaryFolder(), "got"));
  const runner = await startRegisteredRunner(server);
  const conversation = await startConversation(server, { holdAfterLostTurn: true });
  await conversation.say("asks", "ask build execute make all");
  await until(
    async () => (await conversation.get()).status.pendingApprovalIds,
    (ids) => ids?.length === 1,
  );
  // The request of the approval is another call than the report that the turn has begun.
  await conversation.untilSeen("asks");
  await runner.kill();
  await expireAllLeases(server);
  await until(
    async () => (await conversation.get()).status.lostTurn,
    (lost) => lost !== undefined,
  );
  const approved = await command(server, "approve", conversation.id, "--yes");
  expect(approved).toMatchObject({ code: 0, stdout: expect.stringMatching(/^approved /) });
  expect(approved.stderr).toContain(`chartroom run retry-turn ${conversation.id}`);
});

test("without the option a run goes on by itself after a lost turn, as ever", async () => {
  const server = await startHostedServer({ args: LONG_LEASES });
  await addScriptedAgent(server, join(temporaryFolder(), "got"));
  const conversation = await recordLostTurn(server, {});
  await conversation.untilOutput("next");
  await conversation.untilIdle();
  const said = conversation.output().filter((words) => !words.startsWith("step "));
  expect(said).toEqual(["before", LOST, "next"]);
});

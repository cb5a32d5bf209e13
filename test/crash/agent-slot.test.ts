import { join } from "node:path";
import { afterAll, afterEach, expect, test } from "@jest/globals";
import { FinishWorkRequest_Outcome as Outcome, type WorkReport } from "#gen/runner/v1/work_service_pb.js";
import {
  addScriptedAgent,
  type Conversation,
  closeConversations,
  conversationOf,
  receivedInputs,
  startConversation,
} from "../harness/agent-conversation.ts";
import { post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { expireAllLeases } from "../harness/lease.ts";
import { addMember } from "../harness/member.ts";
import { ROOT } from "../harness/program.ts";
import { runCommand, stopAll, temporaryFolder } from "../harness/server.ts";
import type { HeldCall } from "../harness/server-proxy.ts";
import { until } from "../harness/until.ts";
import { createWorld, type World } from "./held-actions.ts";

afterEach(closeConversations);
afterAll(stopAll);

const SEEN = "AGENT_INPUT_RECEIPT_SEEN";

/** A world whose runs give their slots back after a second, with room for so many at a time. */
async function place(slots: number) {
  const world = await createWorld({
    leaseSeconds: 3_600,
    serverArgs: ["--agent-slot-time", "1"],
    runnerArgs: ["--agent-slots", String(slots)],
  });
  const logFile = join(temporaryFolder(), "got");
  await addScriptedAgent(world.server, logFile);
  return { world, logFile };
}

const slotOf = async (conversation: Conversation): Promise<string> => (await conversation.get()).status.slot;
const untilSlot = (conversation: Conversation, slot: string) =>
  until(
    () => slotOf(conversation),
    (now) => now === `SLOT_${slot}`,
  );

/** A run that has had a turn and has given its slot back. */
async function resting({ api }: World): Promise<Conversation> {
  const conversation = await startConversation(api);
  await conversation.say("first", "resumable\necho one");
  await conversation.untilOutput("one");
  await untilSlot(conversation, "GIVEN_BACK");
  return conversation;
}

/** Holds that a run has got each input once and in order, and that nothing of its output is lost or doubled. */
async function expectWhole(
  conversation: Conversation,
  logFile: string,
  ids: readonly string[],
  output: readonly string[],
): Promise<void> {
  await conversation.untilIdle();
  expect(receivedInputs(conversation.id, logFile).map(({ id }) => id)).toEqual(ids);
  const inputs = await conversation.inputs();
  expect(inputs.map(({ id, receipt }) => [id, receipt])).toEqual(ids.map((id) => [id, SEEN]));
  expect(conversation.output()).toEqual(output);
}

const isReleased = ({ finish }: WorkReport) => finish?.outcome === Outcome.RELEASED;

/** Moments in which the slot of a run changes hands. */
const MOMENTS: Readonly<Record<string, (world: World) => HeldCall>> = {
  "its slot was asked back and the runner does not know": ({ proxy }) =>
    proxy.holdResponse("renewLease", (_, { giveBack }) => giveBack),
  "its program has ended and the server does not know": ({ proxy }) =>
    proxy.holdReport({ what: "finish", at: "request", fits: isReleased }),
  "it has given its slot back and the runner does not know": ({ proxy }) =>
    proxy.holdReport({ what: "finish", at: "answer", fits: isReleased }),
};
const victims = ["runner", "server"] as const;
const cases = Object.keys(MOMENTS).flatMap((moment) => victims.map((victim) => ({ moment, victim })));

test.each(cases)(
  "when $moment and the $victim is killed, the run goes on once",
  async ({ moment, victim }) => {
    const { world, logFile } = await place(1);
    const conversation = await startConversation(world.api);
    await conversation.say("first", "resumable\necho one");
    const held = MOMENTS[moment]?.(world);
    await held?.reached;
    if (victim === "runner") {
      await world.killRunner();
      held?.release();
      await expireAllLeases(world.server);
      await conversation.say("second", "echo two");
      await world.restartRunner();
    } else {
      await world.killServer();
      await world.restartServer();
      held?.release();
      await conversation.say("second", "echo two");
    }
    await conversation.untilOutput("two");
    await expectWhole(conversation, logFile, ["first", "second"], ["one", "two"]);
    await world.stop();
  },
);

test("a run without a slot loses nothing while its runner is gone, and goes on when that is back", async () => {
  const { world, logFile } = await place(1);
  const conversation = await resting(world);
  await world.killRunner();
  await conversation.say("second", "echo two");
  await conversation.say("third", "echo three");
  await world.restartRunner();
  await conversation.untilOutput("three");
  await expectWhole(conversation, logFile, ["first", "second", "third"], ["one", "two", "three"]);
  await world.stop();
});

test("a run without a slot outlasts the server, and is woken on the next one", async () => {
  const { world, logFile } = await place(1);
  const conversation = await resting(world);
  await world.killServer();
  await world.restartServer();
  expect(await slotOf(conversation)).toBe("SLOT_GIVEN_BACK");
  await conversation.say("second", "echo two");
  await conversation.untilOutput("two");
  await expectWhole(conversation, logFile, ["first", "second"], ["one", "two"]);
  await world.stop();
});

test("two runs take turns with one slot, each with its own program and nothing lost", async () => {
  const { world, logFile } = await place(1);
  const one = await resting(world);
  const other = await startConversation(world.api);
  await other.say("first", "resumable\necho one");
  await other.untilOutput("one");
  const ids = ["first"];
  const words = ["one"];
  for (const word of ["two", "three", "four"]) {
    await one.say(word, `echo ${word}`);
    await one.untilOutput(word);
    await other.say(word, `echo ${word}`);
    await other.untilOutput(word);
    ids.push(word);
    words.push(word);
  }
  for (const each of [one, other]) await expectWhole(each, logFile, ids, words);
  // The runner's log may come later than what its agents say.
  const taken = () => world.runner.log().filter(({ msg, work }) => msg === "work taken" && work === "agent");
  await until(taken, ({ length }) => length >= 8);
  await world.stop();
});

test("an agent that has not shown that it can go on keeps its slot, and the run says so", async () => {
  const { world, logFile } = await place(2);
  const keeps = await startConversation(world.api);
  await keeps.say("first", "echo one");
  await keeps.untilOutput("one");
  await keeps.untilIdle();
  // It has waited longer than the other when that gives its slot back.
  const other = await resting(world);
  expect(await slotOf(keeps)).toBe("SLOT_KEPT");
  expect((await other.get()).status.phase).toBe("PHASE_WAITING_FOR_INPUT");
  await keeps.say("second", "count");
  await keeps.untilOutput("2");
  await expectWhole(keeps, logFile, ["first", "second"], ["one", "2"]);
  await world.stop();
});

test("a run without a slot is stopped at once, and with the account that it runs for", async () => {
  const { world } = await place(2);
  const conversation = await resting(world);
  await conversation.stop();
  expect((await conversation.get()).status).toMatchObject({ phase: "PHASE_STOPPED" });
  const { account } = await succeeded(post(world.api, "AccountService/GetAccount"));
  const { organizationId } = account;
  const person = await addMember(world.server, { organizationId, email: "person@example.org" });
  const theirs = await startConversation({ ...world.api, url: world.server.url, token: person.token });
  await theirs.say("first", "resumable\necho one");
  await theirs.untilOutput("one");
  await untilSlot(theirs, "GIVEN_BACK");
  await succeeded(
    post(world.api, "AccountService/BlockAccount", { accountId: person.accountId, reason: "left" }),
  );
  // An administrator sees what became of it.
  const seen = conversationOf(world.api, theirs.id);
  expect((await seen.get()).status.phase).toBe("PHASE_STOPPED");
  await world.stop();
});

test("an agent of the protocol gives its slot to another run, and goes on with its session", async () => {
  const { world } = await place(1);
  const command = JSON.stringify([
    process.execPath,
    join(ROOT, "test/harness/acp-agent.ts"),
    JSON.stringify({ resume: true }),
  ]);
  const data = ["--data-dir", world.server.dataDir];
  const add = ["agent", "add", "protocol", "--command", command, "--form", "acp", "--default"];
  expect((await runCommand([...add, ...data])).code).toBe(0);
  const one = await startConversation(world.api);
  await one.say("first", "echo the first words");
  await one.untilOutput("the first words");
  // Another run waits for the only slot.
  const other = await startConversation(world.api);
  await other.say("first", "echo other words");
  await other.untilOutput("other words");
  expect(await slotOf(one)).toBe("SLOT_GIVEN_BACK");
  await one.say("second", "remember");
  await one.untilOutput("echo the first words");
  await one.say("third", "show");
  await until(one.output, (said) => said.some((words) => words.includes("resume []")));
  await one.untilIdle();
  const receipts = (await one.inputs()).map(({ id, receipt }) => `${id} ${receipt}`);
  expect(receipts).toEqual(["first", "second", "third"].map((id) => `${id} ${SEEN}`));
  expect(one.output().slice(0, 2)).toEqual(["the first words", "echo the first words"]);
  await world.stop();
});

import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, afterEach, expect, test } from "@jest/globals";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { builderOf } from "../../src/store/query-builder.ts";
import { SYSTEM } from "../../src/store/store.ts";
import {
  addScriptedAgent,
  type Conversation,
  closeConversations,
  receivedInputs,
  startConversation,
} from "../harness/agent-conversation.ts";
import { expireAllLeases, LONG_LEASES } from "../harness/lease.ts";
import { withServerData } from "../harness/member.ts";
import { startRegisteredRunner, startRunnerProcess, stopRunners } from "../harness/runner-process.ts";
import { startServer, stopAll, type TestServer, temporaryFolder } from "../harness/server.ts";
import { startServerProxy } from "../harness/server-proxy.ts";
import { until } from "../harness/until.ts";

afterEach(async () => {
  closeConversations();
  await stopRunners();
});
afterAll(stopAll);

const SEEN = "AGENT_INPUT_RECEIPT_SEEN";

/** A server with the scripted agent. */
async function place() {
  const server = await startServer({ args: LONG_LEASES });
  const logFile = join(temporaryFolder(), "got");
  await addScriptedAgent(server, logFile);
  return { server, logFile };
}

/** Holds what is shown of the inputs of a run against what its agent wrote down. */
async function expectHonest(
  conversation: Conversation,
  logFile: string,
  ids: readonly string[],
): Promise<void> {
  const got = receivedInputs(conversation.id, logFile).map(({ id }) => id);
  // At least once each, and in order: what came twice came twice in a row, after a loss.
  expect(got.filter((id, at) => id !== got[at - 1])).toEqual(ids);
  const inputs = await conversation.inputs();
  expect(inputs.map(({ id, receipt }) => [id, receipt])).toEqual(ids.map((id) => [id, SEEN]));
}

test("a runner that is killed in the middle of turns loses no input, and shows none as seen that was not got", async () => {
  const { server, logFile } = await place();
  let runner = await startRegisteredRunner(server);
  const { stateDir } = runner;
  const conversation = await startConversation(server);
  const ids: string[] = [];
  const say = async (id: string, words: string) => {
    ids.push(id);
    await conversation.say(id, words);
  };
  for (let round = 1; round <= 4; round++) {
    await say(`long ${round}`, "slow 1000");
    for (const each of ["a", "b"]) await say(`${each} ${round}`, `echo ${each} ${round}`);
    await until(
      conversation.output,
      (said) => said.lastIndexOf("step 1") > said.lastIndexOf(`b ${round - 1}`),
    );
    // Each time a little later in the turn.
    await new Promise((resolve) => setTimeout(resolve, 40 * round));
    await runner.kill();
    await expireAllLeases(server);
    for (const { id, receipt } of await conversation.inputs()) {
      if (receipt === SEEN)
        expect(receivedInputs(conversation.id, logFile).map((got) => got.id)).toContain(id);
    }
    await say(`c ${round}`, `echo c ${round}`);
    const again = startRunnerProcess(server, { stateDir });
    runner = { ...again, runnerId: runner.runnerId };
    await until(conversation.output, (said) => said.includes(`c ${round}`));
  }
  await conversation.untilIdle();
  await expectHonest(conversation, logFile, ids);
  const errors = conversation.output().filter((words) => words.startsWith("error: "));
  expect(errors).toEqual(
    Array.from({ length: 4 }, () => "error: the runner was lost in the middle of a turn"),
  );
  const numbers = conversation.blocks.map(({ sequence }) => Number(sequence));
  expect(numbers).toEqual(numbers.map((_, at) => at + 1));
});

test("a run that waits for a timer is woken by it once, though the server was away meanwhile", async () => {
  const { server: first, logFile } = await place();
  const proxy = await startServerProxy(first);
  await startRegisteredRunner({ ...first, url: proxy.url });
  const conversation = await startConversation({ url: proxy.url, token: first.token });
  await conversation.say("one", "wait 3600");
  await until(conversation.get, ({ status }) => status.waitingInfo?.interests.length === 1);
  await first.stop();
  await withServerData(first, (store) =>
    store.write(SYSTEM, "test", ({ db, now }) =>
      builderOf(db).updateTable("agent_interest").set({ fires_at: now }).execute(),
    ),
  );
  proxy.forwardTo(await startServer({ dataDir: first.dataDir, args: LONG_LEASES }));
  await conversation.untilOutput("woken by timer-1");
  await conversation.say("two", "echo after");
  await conversation.untilOutput("after");
  await conversation.untilIdle();
  expect(conversation.output()).toEqual(["woken by timer-1", "after"]);
  expect(receivedInputs(conversation.id, logFile)).toHaveLength(3);
  await proxy.stop();
});

test("a watch that is dropped 200 times and taken up again loses nothing", async () => {
  const { server } = await place();
  await startRegisteredRunner(server);
  const conversation = await startConversation(server);
  const lines = Array.from({ length: 50 }, (_, at) => `echo line ${at}`).join("\n");
  const saying = (async () => {
    for (let each = 0; each < 12; each++) await conversation.say(`input ${each}`, lines);
  })();
  const sequences: number[] = [];
  for (let drop = 0; drop < 200; drop++) {
    const count = 1 + (drop % 5);
    sequences.push(...(await dropped(server, conversation.id, sequences.at(-1) ?? 0, count)));
  }
  await saying;
  expect(sequences).toEqual(Array.from({ length: 600 }, (_, at) => at + 1));
  await conversation.untilIdle();
  expect(conversation.blocks).toHaveLength(600);
});

/** Numbers of so many blocks after one, of a watch that is broken off behind them. */
async function dropped(
  { url, token }: TestServer,
  agentExecutionId: string,
  after: number,
  count: number,
): Promise<number[]> {
  const transport = createConnectTransport({ baseUrl: `${url}/api`, httpVersion: "1.1" });
  const leaving = new AbortController();
  const request = { agentExecutionId, afterSequence: BigInt(after) };
  const options = { headers: { authorization: `Bearer ${token}` }, signal: leaving.signal };
  const sequences: number[] = [];
  for await (const { news } of createClient(AgentService, transport).watchAgentExecution(request, options)) {
    if (news.case === "block") sequences.push(Number(news.value.sequence));
    if (sequences.length === count) break;
  }
  leaving.abort();
  return sequences;
}

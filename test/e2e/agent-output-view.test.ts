import { fromJson } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { type AgentOutputBlock, AgentOutputBlockSchema, AgentOutputView } from "#gen/service/v1/agent_pb.js";
import type { WatchAgentExecutionResponse } from "#gen/service/v1/agent_service_pb.js";
import { post, reasonOf } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import {
  type AgentFixture,
  createAgentFixture,
  type LeasedAgentExecution,
  startLeasedAgentExecution,
} from "../harness/leased-agent-execution.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";

let server: ReachableServer;
let home: AgentFixture;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
  home = await createAgentFixture(server);
});
afterAll(stopAll);

const FOLDED = AgentOutputView.FOLDED;

const call = (id: string, changed: object) => ({ toolCall: { id, ...changed } });
const plan = (...steps: string[]) => ({ plan: { entries: steps.map((content) => ({ content })) } });

/** Two tool calls whose blocks are mixed, two plans, two usages, and what folds with nothing. */
const OUTPUT = [
  { text: { content: "I read." } },
  plan("read"),
  call("a", { title: "Read a", kind: "KIND_READ", state: "STATE_PENDING" }),
  { usage: { contextUsed: "1", contextSize: "9", cost: { amount: 0.5, currency: "EUR" } } },
  call("b", { title: "Read b", state: "STATE_RUNNING", locations: [{ path: "b.txt", line: 7 }] }),
  call("a", { state: "STATE_RUNNING", input: "{}" }),
  { thought: { content: "Hm." } },
  plan("read", "write"),
  call("a", { state: "STATE_DONE", result: "words" }),
  { question: { id: "a", message: "Which?", schema: '{"type":"object"}', state: "STATE_OPEN" } },
  { usage: { contextUsed: "2", contextSize: "9" } },
  { text: { content: "Done." } },
];

/** What is shown of a block: its place, how far it is up to date, and its content. */
const shownOf = ({ sequence, lastSequence, block }: AgentOutputBlock) => {
  const { case: kind, value } = block;
  const words = {
    text: () => kind === "text" && value.content,
    thought: () => kind === "thought" && value.content,
    plan: () => kind === "plan" && value.entries.map(({ content }) => content).join(),
    usage: () => kind === "usage" && `${value.contextUsed}`,
    question: () => kind === "question" && `${value.message} ${value.state}`,
    toolCall: () => kind === "toolCall" && [value.id, value.title, value.state, value.result].join(" "),
  };
  return `${sequence}-${lastSequence} ${words[kind as keyof typeof words]()}`;
};

const FOLDED_OUTPUT = [
  "1-1 I read.",
  "3-9 a Read a 4 words",
  "5-5 b Read b 3 ",
  "7-7 Hm.",
  "8-8 read,write",
  "10-10 Which? 1",
  "11-11 2",
  "12-12 Done.",
];

async function started(): Promise<LeasedAgentExecution> {
  const run = await startLeasedAgentExecution(home);
  await report(run, 1, OUTPUT);
  return run;
}

async function report(run: LeasedAgentExecution, from: number, contents: readonly object[]): Promise<void> {
  const blocks = contents.map((content, index) => ({ sequence: from + index, ...content }));
  await succeeded(run.report({ blocks }));
}

const list = (id: string, body: object) =>
  post(home.server, "AgentService/ListAgentOutputBlocks", { agentExecutionId: id, ...body }, home.token);

async function listed(id: string, view: string, pageSize: number) {
  const blocks: AgentOutputBlock[] = [];
  for (let token = ""; ; ) {
    const page = await succeeded(list(id, { view, pagination: { pageSize, token } }));
    expect(page.lastSequence).toBe("12");
    blocks.push(...page.blocks.map((block: object) => fromJson(AgentOutputBlockSchema, block as never)));
    token = page.pagination.nextToken;
    if (token === "") return blocks;
  }
}

const blocksIn = (messages: readonly WatchAgentExecutionResponse[]) =>
  messages.flatMap(({ news }) => (news.case === "block" ? [news.value] : []));

test("a list has every block, or the present picture, on pages of any size", async () => {
  const { id } = await started();
  const all = await listed(id, "AGENT_OUTPUT_VIEW_BLOCKS", 5);
  expect(all.map(({ sequence, lastSequence }) => [Number(sequence), lastSequence])).toEqual(
    OUTPUT.map((_, index) => [index + 1, 0n]),
  );
  for (const pageSize of [1, 3, 100]) {
    const folded = await listed(id, "AGENT_OUTPUT_VIEW_FOLDED", pageSize);
    expect(folded.map(shownOf)).toEqual(FOLDED_OUTPUT);
  }
  // A token of one view continues no list of the other.
  const { pagination } = await succeeded(list(id, { view: 1, pagination: { pageSize: 1 } }));
  const answer = await list(id, { view: 2, pagination: { pageSize: 1, token: pagination.nextToken } });
  expect(reasonOf(answer)).toBe("PAGE_TOKEN_INVALID");
});

test("a folded watch tells the present picture, and then each block that has changed as a whole", async () => {
  const run = await started();
  const watch = run.watch(0, FOLDED);
  const first = blocksIn(await watch.until(FOLDED_OUTPUT.length + 1)).map(shownOf);
  expect(first.toSorted()).toEqual(FOLDED_OUTPUT.toSorted());
  await report(run, 13, [
    call("b", { state: "STATE_FAILED", result: "gone" }),
    plan("write"),
    { question: { id: "a", state: "STATE_ANSWERED" } },
  ]);
  const more = blocksIn(await watch.until(FOLDED_OUTPUT.length + 4)).slice(FOLDED_OUTPUT.length);
  expect(more.map(shownOf)).toEqual(["5-13 b Read b 5 gone", "14-14 write", "10-15 Which? 2"]);
  await report(run, 16, [call("b", { title: "Read b again" })]);
  const last = blocksIn(await watch.until(FOLDED_OUTPUT.length + 5)).at(-1);
  expect(last && shownOf(last)).toBe("5-16 b Read b again 5 gone");
  watch.cancel();
});

test("a folded watch is resumed behind any block with the same picture at its end", async () => {
  const run = await started();
  await succeeded(home.runner.finish(run.work));
  for (let after = 0; after <= OUTPUT.length; after++) {
    const watch = run.watch(after, FOLDED);
    await watch.ended;
    const sent = blocksIn(watch.messages);
    expect(sent.map(shownOf).toSorted()).toEqual(
      FOLDED_OUTPUT.filter((line) => Number(/-(\d+)/.exec(line)?.[1]) > after).toSorted(),
    );
    const ends = sent.map(({ lastSequence }) => Number(lastSequence));
    expect(ends).toEqual(ends.toSorted((one, other) => one - other));
  }
});

test("one tool call of many blocks is one block, in a list and in a watch", async () => {
  const run = await startLeasedAgentExecution(home);
  for (let from = 1; from <= 640; from += 64) {
    const updates = Array.from({ length: 64 }, (_, index) =>
      call("a", { title: "Run", result: `line ${from + index}` }),
    );
    await report(run, from, updates);
  }
  const { blocks } = await succeeded(list(run.id, { view: "AGENT_OUTPUT_VIEW_FOLDED" }));
  expect(blocks).toMatchObject([{ sequence: "1", lastSequence: "640", toolCall: { result: "line 640" } }]);
  await succeeded(home.runner.finish(run.work));
  const watch = run.watch(100, FOLDED);
  await watch.ended;
  expect(blocksIn(watch.messages).map(shownOf)).toEqual(["1-640 a Run 0 line 640"]);
});

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "@jest/globals";
import { AgentInputReceipt, AgentInputSchema, AgentOutputBlockSchema } from "#gen/service/v1/agent_pb.js";
import {
  ApprovalKind,
  ApprovalSchema,
  ApprovalState,
  ApprovalDeciders_Who as Who,
} from "#gen/service/v1/approval_pb.js";
import { SortOrder } from "#gen/service/v1/pagination_pb.js";
import { RunnerKind } from "#gen/service/v1/runner_configuration_pb.js";
import { type TreeNode, treeOf } from "../../console/src/pages/agents/run/changes/file-tree.ts";
import { itemsOf, sizeOf } from "../../console/src/pages/agents/run/items.ts";
import { turnsOf } from "../../console/src/pages/agents/run/turns.ts";
import { whyNotTogether } from "../../console/src/pages/approvals/together.ts";
import { editorsIn, editorsText } from "../../console/src/pages/projects/editors-text.ts";
import { chunksOf, importLines } from "../../console/src/pages/projects/import-lines.ts";
import { countFilters, requestOf } from "../../console/src/pages/projects/project-filters.ts";
import { FOUND, pageSizeWith } from "../../console/src/parts/pickers/page-size.ts";

describe("the lines of an import", () => {
  test("name each repository once, with the number of its line", () => {
    expect(importLines("# ours\n\n a.git \nb.git\r\na.git\n")).toEqual([
      { line: 3, remoteUri: "a.git" },
      { line: 4, remoteUri: "b.git" },
    ]);
  });

  test.each([
    [0, []],
    [2, [2]],
    [3, [2, 1]],
  ])("go in pieces: %i lines", (length, lengths) => {
    const list = Array.from({ length }, (_, at) => at);
    expect(chunksOf(list, 2).map((piece) => piece.length)).toEqual(lengths);
    expect(chunksOf(list, 2).flat()).toEqual(list);
  });
});

test.each([
  [0, FOUND],
  [91, 99],
  [92, 100],
  [93, 100],
])("a search next to %i that are chosen asks for no more than a page", (count, pageSize) => {
  expect(pageSizeWith(Array.from({ length: count }, String))).toBe(pageSize);
});

describe("the filters of projects", () => {
  test("are what the contract's list is asked for", () => {
    const runner = "019a0000-0000-7000-8000-000000000001";
    const address = { on: "remote", runner, repository: "git@host:a/b.git", annotation: "team=a=b" };
    expect(countFilters({ ...address, q: "words", sort: "oldest" })).toBe(4);
    expect(requestOf({ ...address, sort: "oldest" })).toEqual({
      sort: { field: "id", order: SortOrder.ASC },
      filter: {
        runnerKinds: [RunnerKind.REMOTE],
        runnerIds: [runner],
        creatorIds: [],
        specRemoteUris: ["git@host:a/b.git"],
        annotations: { team: "a=b" },
      },
    });
  });

  test.each(["", "constructor", "popularity"])("know no order %p, and take the first one", (sort) => {
    expect(requestOf({ sort, on: sort })).toMatchObject({
      sort: { field: "popularity", order: SortOrder.DESC },
      filter: { runnerKinds: [], annotations: {} },
    });
  });
});

describe("deciding together", () => {
  const ME = "019a0000-0000-7000-8000-000000000002";
  const me = { id: ME };
  const why = (approval: MessageInitShape<typeof ApprovalSchema>, mayBeAdministrator = true) =>
    whyNotTogether(create(ApprovalSchema, { state: ApprovalState.PENDING, ...approval }), {
      userId: ME,
      mayBeAdministrator,
    });

  test("is offered to those who may decide", () => {
    expect(why({})).toBeUndefined();
    expect(why({ creator: me }, false)).toBeUndefined();
    expect(why({ deciders: { who: Who.USERS, userIds: [ME] } }, false)).toBeUndefined();
    expect(why({ deciders: { who: Who.USERS, groupIds: ["a group"] } }, false)).toBeUndefined();
  });

  test.each([
    ["It has ended.", { state: ApprovalState.DENIED }],
    ["A question is answered on its own page.", { kind: ApprovalKind.QUESTION }],
    ["You have decided. Others must decide, too.", { decisions: [{ by: me, approved: true }] }],
    ["The person who asked cannot decide it.", { creator: me, deciders: { excludesStarter: true } }],
    ["The person who asked cannot decide it.", { executor: me, deciders: { excludesStarter: true } }],
    ["Other people decide it.", { deciders: { who: Who.USERS, userIds: ["another"] } }],
  ])("says why not: %s", (sentence, approval) => {
    expect(why(approval)).toBe(sentence);
  });

  test("is for administrators where the policy says so", () => {
    const deciders = { who: Who.ADMINISTRATORS };
    expect(why({ deciders })).toBeUndefined();
    expect(why({ deciders, creator: me }, false)).toBe("Administrators decide it.");
    expect(why({}, false)).toBe("Only the person who asked and administrators can decide it.");
  });
});

test("editors are read as they are written", () => {
  const editors = { code: { versions: ["stable", "insiders"] }, vim: { versions: [] } };
  expect(editorsText(editors)).toBe("code: stable, insiders\nvim");
  expect(editorsIn(`\n${editorsText(editors)} : \n`)).toEqual(editors);
});

test("what an agent asks for follows its call, or else at its time, and is not folded while it waits", () => {
  const at = (ms: number) => timestampFromMs(ms);
  const call = (sequence: number, id: string) =>
    create(AgentOutputBlockSchema, {
      sequence: BigInt(sequence),
      at: at(sequence * 10),
      inputId: "one",
      block: { case: "toolCall", value: { id } },
    });
  const approval = (id: string, state: ApprovalState, ms: number, toolCallId = "") =>
    create(ApprovalSchema, { id, state, createdAt: at(ms), asker: { toolCallId } });
  const input = (id: string, ms: number) =>
    create(AgentInputSchema, {
      id,
      createdAt: at(ms),
      receipt: AgentInputReceipt.SEEN,
      input: { case: "userInput", value: {} },
    });
  const blocks = [call(1, "a"), call(2, "b"), call(3, "c"), call(4, "d")];
  const { APPROVED, PENDING } = ApprovalState;
  const shown = (...approvals: ReturnType<typeof approval>[]) =>
    itemsOf([input("one", 1)], blocks, approvals).map((item) =>
      item.kind === "steps" ? item.steps.map(({ key }) => key) : item.key,
    );
  const [one, ...others] = ["block-1", "block-2", "block-3", "block-4"];
  expect(shown()).toEqual(["input-one", [one, ...others]]);
  expect(shown(approval("x", APPROVED, 5), approval("y", APPROVED, 99, "a"))).toEqual([
    "input-one",
    ["approval-x", one, "approval-y", ...others],
  ]);
  expect(shown(approval("x", PENDING, 99, "b"))).toEqual([
    "input-one",
    one,
    "block-2",
    "approval-x",
    "block-3",
    "block-4",
  ]);
  // Of no call, and asked for last.
  expect(shown(approval("x", PENDING, 99))).toEqual(["input-one", [one, ...others], "approval-x"]);
  // A question may have the id of a call: what is asked for follows the first of them, once.
  const question = create(AgentOutputBlockSchema, {
    sequence: 5n,
    at: at(50),
    inputId: "one",
    block: { case: "question", value: { id: "a" } },
  });
  const asked = itemsOf([input("one", 1)], [...blocks, question], [approval("y", APPROVED, 99, "a")]);
  expect(asked.map(({ key }) => key)).toEqual(["input-one", "steps-block-1", "block-5"]);
  const later = create(AgentOutputBlockSchema, { ...call(20, "e"), inputId: "two" });
  const turns = itemsOf(
    [input("one", 1), input("two", 100)],
    [...blocks, later],
    [approval("x", APPROVED, 99)],
  );
  expect(turns.map(({ key }) => key)).toEqual(["input-one", "steps-block-1", "input-two", "block-20"]);
  expect(turns.map(sizeOf)).toEqual([1, 5, 1, 1]);
});

test("files are in their folders, and folders that have one folder alone in one line", () => {
  const paths = ["a/b/c.txt", "a/b/d/e.txt", "f.txt", "g/h.txt"];
  const shown = (nodes: readonly TreeNode<{ path: string }>[]): unknown[] =>
    nodes.map((node) => (node.kind === "file" ? node.name : { [node.name]: shown(node.nodes) }));
  const tree = treeOf(paths.map((path) => ({ path })));
  expect(shown(tree)).toEqual([{ "a/b": ["c.txt", { d: ["e.txt"] }] }, "f.txt", { g: ["h.txt"] }]);
  expect(treeOf([])).toEqual([]);
});

test("a turn ends before the first block of the next one; the last one may go on", () => {
  const block = (sequence: number, inputId: string, content?: string) =>
    create(AgentOutputBlockSchema, {
      sequence: BigInt(sequence),
      inputId,
      block: content === undefined ? { case: "usage", value: {} } : { case: "text", value: { content } },
    });
  const blocks = [
    block(1, "", "hello"),
    block(2, "a", "yes"),
    block(3, "a"),
    block(4, "b"),
    block(5, "c", "no"),
  ];
  expect(turnsOf(blocks).map(({ sequence, end }) => [Number(sequence), Number(end.sequence)])).toEqual([
    [3, 2],
    [4, 4],
  ]);
  expect(turnsOf([])).toEqual([]);
});

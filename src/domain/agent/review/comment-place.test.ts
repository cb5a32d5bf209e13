import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import {
  AgentReviewCommentSchema as CommentSchema,
  AgentReviewComment_Side as Side,
  AgentReviewComment_State as State,
} from "#gen/service/v1/agent_review_pb.js";
import {
  DiffBase,
  type EnvironmentFileDiff,
  EnvironmentFileDiffSchema,
  EnvironmentFileDiff_Kind as Kind,
} from "#gen/service/v1/environment_changes_pb.js";
import { type DiffFile, type PresentDiffs, presentOf, quoteOf } from "./comment-place.ts";
import { keptLine } from "./diff-lines.ts";

const { ENVIRONMENT, LAST_TURN } = DiffBase;
const { OLD, NEW } = Side;

/** A file of a diff whose patch has the given lines in one hunk. */
function file(
  path: string,
  lines: readonly string[],
  more: { old?: number; new?: number; oldPath?: string } = {},
) {
  const [oldFirst, newFirst] = [more.old ?? 1, more.new ?? 1];
  return create(EnvironmentFileDiffSchema, {
    path,
    oldPath: more.oldPath ?? "",
    kind: more.oldPath ? Kind.RENAMED : Kind.CHANGED,
    patch: `@@ -${oldFirst},9 +${newFirst},9 @@ heading\n${lines.map((line) => `${line}\n`).join("")}`,
  });
}

const added = (path: string, lines: readonly string[]) => {
  const made = file(
    path,
    lines.map((line) => `+${line}`),
    { old: 0 },
  );
  made.kind = Kind.ADDED;
  return made;
};

/** Diffs with a digest each: "a" for the first state, "b" for the next. */
function diffs(
  digest: string,
  files: readonly EnvironmentFileDiff[],
  lastTurn: readonly EnvironmentFileDiff[] = [],
): PresentDiffs {
  const all: DiffFile[] = [
    ...files.map((each) => ({ base: ENVIRONMENT, file: each })),
    ...lastTurn.map((each) => ({ base: LAST_TURN, file: each })),
  ];
  return {
    digestOf: (base) => `${base}${digest}`,
    filesNamed: (paths) => all.filter((each) => paths.has(each.file.path) || paths.has(each.file.oldPath)),
    addedFiles: () => all.filter((each) => each.file.kind === Kind.ADDED),
  };
}

/** A comment on lines of the first state. */
function comment(
  first: PresentDiffs,
  path: string,
  [firstLine, lastLine]: readonly [number, number],
  { side = NEW, base = ENVIRONMENT } = {},
) {
  const made = create(CommentSchema, { path, side, firstLine, lastLine, base, digest: `${base}a` });
  const quote = quoteOf(made, first);
  return quote ? { ...made, quote } : made;
}

const WORK = [
  " const one = 1;",
  "-const old = 2;",
  "+const two = 2;",
  "+const three = 3;",
  " const four = 4;",
];
const before = diffs("a", [file("a.ts", WORK)]);

describe("the lines of a comment", () => {
  test("are those of the side that it is on, with up to two on each side", () => {
    expect(comment(before, "a.ts", [2, 3]).quote).toMatchObject({
      lines: ["const two = 2;", "const three = 3;"],
      before: ["const one = 1;"],
      after: ["const four = 4;"],
    });
    expect(comment(before, "a.ts", [2, 2], { side: OLD }).quote).toMatchObject({
      lines: ["const old = 2;"],
      before: ["const one = 1;"],
      after: ["const four = 4;"],
    });
    const long = diffs("a", [
      file("a.ts", ["+0", "+1", "+2", "+3", "+4", "+5", "+6", "+7", "+8"], { new: 10 }),
    ]);
    expect(comment(long, "a.ts", [14, 14]).quote).toMatchObject({
      lines: ["4"],
      before: ["2", "3"],
      after: ["5", "6"],
    });
  });

  test.each([
    ["begin before the hunk", "a.ts", [0, 1]],
    ["end behind it", "a.ts", [4, 5]],
    ["are of a file that is not in the diff", "b.ts", [1, 1]],
  ] as const)("are not shown when they %s", (_, path, lines) => {
    expect(comment(before, path, lines).quote).toBeUndefined();
  });

  test("are kept up to 160 characters, without what hides or reorders words", () => {
    expect(keptLine(`${"x".repeat(159)}y`)).toHaveLength(160);
    expect(keptLine(`${"x".repeat(160)}y`)).toBe("x".repeat(160));
    expect(keptLine("😀".repeat(161))).toBe("😀".repeat(160));
    expect(keptLine("a\u202eb\u{e0041}c")).toBe("abc");
  });

  test("do not end at a note about the end of the file", () => {
    const noted = diffs("a", [
      file("a.ts", ["-old", "\\ No newline at end of file", "+new", "\\ No newline at end of file"]),
    ]);
    expect(comment(noted, "a.ts", [1, 1]).quote).toMatchObject({ lines: ["new"], before: [], after: [] });
  });
});

describe("the present place of a comment", () => {
  const place = (path: string, firstLine: number, lastLine: number) => ({ path, firstLine, lastLine });
  const OUTDATED = { state: State.OUTDATED, path: "", firstLine: 0, lastLine: 0 };
  const two = comment(before, "a.ts", [2, 3]);

  test("is where it was while the diff is the same", () => {
    expect(presentOf(two, before)).toMatchObject({ state: State.CURRENT, ...place("a.ts", 2, 3) });
  });

  test("is where it was when another file has changed", () => {
    const now = diffs("b", [file("a.ts", WORK), file("b.ts", ["+const two = 2;", "+const three = 3;"])]);
    expect(presentOf(two, now)).toMatchObject({ state: State.CURRENT, ...place("a.ts", 2, 3) });
  });

  test("moves with lines that were inserted above", () => {
    const now = diffs("b", [file("a.ts", ["+// new", "+// words", ...WORK])]);
    expect(presentOf(two, now)).toMatchObject({ state: State.MOVED, ...place("a.ts", 4, 5) });
  });

  test.each([
    [
      "one of its lines has changed",
      file("a.ts", [" const one = 1;", "+const two = 2;", "+const three = 4;"]),
    ],
    [
      "its lines are no longer next to each other",
      file("a.ts", ["+const two = 2;", "+//", "+const three = 3;"]),
    ],
    ["its lines are gone from the diff", file("a.ts", ["-const old = 2;"])],
    ["its lines are on the other side now", file("a.ts", ["-const two = 2;", "-const three = 3;"])],
    ["its file is not in the diff any more", file("c.ts", ["+other"])],
  ])("is outdated when %s", (_, changed) => {
    expect(presentOf(two, diffs("b", [changed]))).toMatchObject(OUTDATED);
  });

  test("is outdated without lines to look for, and without a diff to look in", () => {
    const { quote: _, ...unknown } = two;
    expect(presentOf(create(CommentSchema, unknown), diffs("b", [file("a.ts", WORK)]))).toMatchObject(
      OUTDATED,
    );
    const none = { digestOf: () => undefined, filesNamed: () => [], addedFiles: () => [] };
    expect(presentOf(two, none)).toMatchObject(OUTDATED);
  });

  test("follows a file to another name, once and twice", () => {
    const renamed = file("b.ts", WORK, { oldPath: "a.ts" });
    expect(presentOf(two, diffs("b", [renamed]))).toMatchObject({
      state: State.MOVED,
      ...place("b.ts", 2, 3),
    });
    const onRenamed = comment(diffs("a", [renamed]), "b.ts", [2, 3]);
    const again = diffs("b", [file("c.ts", WORK, { oldPath: "a.ts" })]);
    expect(presentOf(onRenamed, again)).toMatchObject({ state: State.MOVED, ...place("c.ts", 2, 3) });
  });

  test("follows a new file to another name, by the last turn or by its lines", () => {
    const lines = ["one line", "two lines", "three lines"];
    const onNew = comment(diffs("a", [added("new.txt", lines)]), "new.txt", [2, 2]);
    const renamed = diffs(
      "b",
      [added("other.txt", ["zero", ...lines])],
      [file("other.txt", [], { oldPath: "new.txt" })],
    );
    expect(presentOf(onNew, renamed)).toMatchObject({ state: State.MOVED, ...place("other.txt", 3, 3) });
    const later = diffs("b", [added("other.txt", lines)]);
    expect(presentOf(onNew, later)).toMatchObject({ state: State.MOVED, ...place("other.txt", 2, 2) });
    const unlike = diffs("b", [added("other.txt", ["one line", "two lines", "3 lines"])]);
    expect(presentOf(onNew, unlike)).toMatchObject(OUTDATED);
    const twice = diffs("b", [added("other.txt", lines), added("third.txt", lines)]);
    expect(presentOf(onNew, twice)).toMatchObject(OUTDATED);
  });

  test("is recognized by its neighbours when the lines are there twice, and by nothing when those are the same", () => {
    const twice = diffs("b", [file("a.ts", [...WORK, "+//", "+const two = 2;", "+const three = 3;", "+//"])]);
    expect(presentOf(two, twice)).toMatchObject({ state: State.CURRENT, ...place("a.ts", 2, 3) });
    const same = diffs("b", [file("a.ts", [...WORK, ...WORK])]);
    expect(presentOf(two, same)).toMatchObject(OUTDATED);
  });

  test("is not found by a line that says little, unless a neighbour is the same", () => {
    const brace = comment(diffs("a", [file("a.ts", ["+first();", "+}", "+second();"])]), "a.ts", [2, 2]);
    const elsewhere = diffs("b", [file("a.ts", ["+third();", "+}", "+fourth();"])]);
    expect(presentOf(brace, elsewhere)).toMatchObject(OUTDATED);
    const moved = diffs("b", [file("a.ts", ["+zero();", "+first();", "+}", "+fourth();"])]);
    expect(presentOf(brace, moved)).toMatchObject({ state: State.MOVED, ...place("a.ts", 3, 3) });
  });

  test("of the old side is looked for on the old side of its own diff", () => {
    const old = comment(before, "a.ts", [2, 2], { side: OLD });
    const now = diffs("b", [file("a.ts", ["+const old = 2;", ...WORK])]);
    expect(presentOf(old, now)).toMatchObject({ state: State.CURRENT, ...place("a.ts", 2, 2) });
    const elsewhere = diffs("b", [file("a.ts", ["+x"])], [file("a.ts", WORK)]);
    expect(presentOf(old, elsewhere)).toMatchObject(OUTDATED);
  });

  test("of the last turn's new side is found in the diff against what was checked out", () => {
    const first = diffs("a", [file("a.ts", WORK)], [file("a.ts", ["+const three = 3;"], { new: 3 })]);
    const three = comment(first, "a.ts", [3, 3], { base: LAST_TURN });
    const now = diffs("b", [file("a.ts", ["+//", ...WORK])], [file("b.ts", ["+other"])]);
    expect(presentOf(three, now)).toMatchObject({ state: State.MOVED, ...place("a.ts", 4, 4) });
    const both = diffs("b", [file("a.ts", WORK)], [file("a.ts", ["+const three = 3;"], { new: 3 })]);
    expect(presentOf(three, both)).toMatchObject({ state: State.CURRENT, ...place("a.ts", 3, 3) });
  });
});

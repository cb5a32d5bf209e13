import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { ApprovalKind, ApprovalPushSchema } from "#gen/service/v1/approval_pb.js";
import { approvalContent } from "./approval.ts";
import { decidePush, matchesBranch, type PushRule } from "./push-rules.ts";

const push = (branch: string, isForced = false) => ({ branch, defaultBranch: "main", isForced });
const rule = (decision: PushRule["decision"], branches: string[], force = false): PushRule => ({
  decision,
  branches,
  force,
});

describe("without a rule", () => {
  test.each([
    ["feature/b", false, "allow"],
    ["feature/b", true, "deny"],
    ["main", false, "deny"],
    ["main", true, "deny"],
    ["Main", false, "allow"],
    ["main2", false, "allow"],
  ])("a push to %s, forced: %j, is decided as %3$s", (branch, isForced, decision) => {
    expect(decidePush([], push(branch, isForced))).toEqual({ decision, rule: undefined });
  });

  test("a remote without a default branch has none that is refused", () => {
    expect(decidePush([], { branch: "main", defaultBranch: undefined, isForced: false }).decision).toBe(
      "allow",
    );
  });
});

describe("with rules", () => {
  test("the first that is about the push decides", () => {
    const rules = [rule("deny", ["release/*"]), rule("ask", ["release/**", "hot/*"]), rule("allow", ["**"])];
    expect(decidePush(rules, push("release/1"))).toEqual({ decision: "deny", rule: 0 });
    expect(decidePush(rules, push("release/1/a"))).toEqual({ decision: "ask", rule: 1 });
    expect(decidePush(rules, push("hot/fix"))).toEqual({ decision: "ask", rule: 1 });
    expect(decidePush(rules, push("other"))).toEqual({ decision: "allow", rule: 2 });
  });

  test("the default branch is opened by its whole name only", () => {
    expect(decidePush([rule("allow", ["**"])], push("main")).decision).toBe("deny");
    expect(decidePush([rule("ask", ["mai*", "main*"])], push("main")).decision).toBe("deny");
    expect(decidePush([rule("ask", ["other", "main"])], push("main"))).toEqual({ decision: "ask", rule: 0 });
    expect(decidePush([rule("deny", ["**"]), rule("allow", ["main"])], push("main"))).toEqual({
      decision: "deny",
      rule: 0,
    });
  });

  test("a push that rewrites needs a rule that says so, and a refusal needs not", () => {
    expect(decidePush([rule("allow", ["**"])], push("b", true)).decision).toBe("deny");
    expect(decidePush([rule("allow", ["**"], true)], push("b", true)).decision).toBe("allow");
    expect(decidePush([rule("allow", ["**"], true)], push("b")).decision).toBe("allow");
    expect(decidePush([rule("allow", ["**"], true)], push("main", true)).decision).toBe("deny");
    expect(decidePush([rule("deny", ["b"]), rule("allow", ["**"], true)], push("b", true)).decision).toBe(
      "deny",
    );
    expect(decidePush([rule("allow", ["main"]), rule("ask", ["main"], true)], push("main", true))).toEqual({
      decision: "ask",
      rule: 1,
    });
  });
});

test.each([
  ["*", "a", true],
  ["*", "a/b", false],
  ["*", "", true],
  ["**", "a/b/c", true],
  ["***", "a/b", true],
  ["a*c", "abbc", true],
  ["a*c", "ab/c", false],
  ["a**c", "ab/c", true],
  ["feature/*", "feature/b", true],
  ["feature/*", "feature/b/c", false],
  ["feature/**", "feature/b/c", true],
  ["feature/**", "feature", false],
  ["*/b", "a/b", true],
  ["a.c", "abc", false],
  ["a?c", "abc", false],
  ["[ab]", "a", false],
  ["🚢*", "🚢s", true],
  ["A", "a", false],
  ["a", "aa", false],
  ["", "a", false],
])("the pattern %j matches %j: %j", (pattern, branch, matches) => {
  expect(matchesBranch(pattern, branch)).toBe(matches);
});

test("a pattern of many stars takes no time that explodes", () => {
  const began = performance.now();
  expect(matchesBranch(`${"*a".repeat(120)}b`, "a".repeat(255))).toBe(false);
  expect(performance.now() - began).toBeLessThan(5_000);
});

describe("what an approval covers", () => {
  const content = {
    remote: "https://git.example.org/team/r.git",
    branch: "b",
    commit: "5b1f6f3a9c0d4e8271a6b3c95d20e4f78a9b6c1d",
    force: false,
    pullRequest: { title: "Add b", body: "It was missing.", base: "main", draft: false },
  };
  const textOf = (value: MessageInitShape<typeof ApprovalPushSchema>) =>
    approvalContent({ case: "push", value: create(ApprovalPushSchema, value) });

  test("is canonical JSON, with a title in a line", () => {
    expect(textOf(content)).toEqual({
      kind: ApprovalKind.PUSH,
      title: "Push b and open a pull request: https://git.example.org/team/r.git",
      requestJson:
        '{"branch":"b","commit":"5b1f6f3a9c0d4e8271a6b3c95d20e4f78a9b6c1d",' +
        '"pullRequest":{"base":"main","body":"It was missing.","title":"Add b"},' +
        '"remote":"https://git.example.org/team/r.git"}',
    });
  });

  test("is another when anything of it is", () => {
    const { pullRequest } = content;
    const others = [
      { ...content, remote: "https://git.example.org/team/s.git" },
      { ...content, branch: "c" },
      { ...content, commit: "0".repeat(40) },
      { ...content, force: true },
      { remote: content.remote, branch: content.branch, commit: content.commit },
      { ...content, pullRequest: { ...pullRequest, title: "Add c" } },
      { ...content, pullRequest: { ...pullRequest, body: "" } },
      { ...content, pullRequest: { ...pullRequest, base: "release" } },
      { ...content, pullRequest: { ...pullRequest, draft: true } },
    ];
    const texts = [content, ...others].map((each) => textOf(each).requestJson);
    expect(new Set(texts).size).toBe(others.length + 1);
  });
});

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { combineChecks } from "../../src/scm/followed-pull-request.ts";
import type { HostMemory } from "../../src/scm/host-memory.ts";
import { createSourceControl, type SourceControl } from "../../src/scm/source-control.ts";
import { type ScmHost, startScmHost } from "../harness/scm-host.ts";
import { headShaOf } from "../harness/scm-state.ts";

describe.each(["github", "gitlab", "gitea"] as const)("a pull request at a host of kind %s", (kind) => {
  let host: ScmHost;
  let scm: SourceControl;
  let repository = "";
  let count = 0;
  beforeAll(async () => {
    host = await startScmHost({ kind });
    scm = createSourceControl({ allowPrivateAddresses: true, plainHttpHosts: new Set([host.host]) });
    await scm.hostKind(host.host);
  });
  afterAll(() => host.stop());
  beforeEach(() => {
    count += 1;
    repository = `o/r${count}`;
    host.addRepository(repository);
    host.addPullRequest({ repository, branch: "add-b", base: "main", title: "Add b\u0007" });
  });

  const read = (memory: HostMemory = {}, more: object = {}) =>
    scm.readPullRequest({ host: host.host, token: host.token, repository, number: 1, memory, ...more });
  const change = (what: Parameters<ScmHost["changePullRequest"]>[2]) =>
    host.changePullRequest(repository, 1, what);
  /** The status of each answer of a call: what the host sent again, and what it said is unchanged. */
  const asked = async (call: () => Promise<unknown>) => {
    const before = host.requests.length;
    await call();
    return host.requests.slice(before).map(({ headers }) => headers["if-none-match"] !== undefined);
  };

  test("is read with what it is", async () => {
    const [hosted] = host.pullRequests().filter((each) => each.repository === repository);
    expect((await read()).pullRequest).toEqual({
      state: "open",
      title: "Add b ",
      draft: false,
      branch: "add-b",
      headSha: hosted && headShaOf(hosted),
      base: "main",
      checks: "none",
    });
  });

  test.each([
    [{ build: "pending" }, "pending"],
    [{ build: "success" }, "passed"],
    [{ build: "success", lint: "pending" }, "pending"],
    [{ build: "failure", lint: "pending" }, "failed"],
    [{ "status/build": "pending" }, "pending"],
    [{ "status/build": "success" }, "passed"],
    [{ build: "success", "status/lint": "failure" }, "failed"],
    [{ build: "failure", "status/lint": "success" }, "failed"],
  ] as const)("has with the checks %j those %s", async (checks, expected) => {
    change({ checks });
    expect((await read()).pullRequest.checks).toBe(expected);
  });

  test.each(["merged", "closed"] as const)("that is %s has its checks read no longer", async (state) => {
    change({ state, checks: { build: "failure" } });
    let sent: unknown[] = [];
    const reading = async () => {
      expect((await read()).pullRequest).toMatchObject({ state, checks: undefined });
    };
    sent = await asked(reading);
    expect(sent).toHaveLength(1);
  });

  test("is asked for under the condition that it changed, and is the same when it did not", async () => {
    change({ checks: { build: "pending", "status/lint": "success" } });
    const first = await read();
    const count = { github: 3, gitlab: 1, gitea: 2 }[kind];
    expect(await asked(() => read())).toEqual(Array(count).fill(false));
    // Gitea sends no ETag, so there is no condition.
    expect(await asked(() => read(first.memory))).toEqual(Array(count).fill(kind !== "gitea"));
    const stored = JSON.parse(JSON.stringify(first.memory));
    expect(await read(stored)).toEqual(first);
    change({ checks: { build: "failure", "status/lint": "success" } });
    const third = await read(stored);
    expect(third.pullRequest).toEqual({ ...first.pullRequest, checks: "failed" });
    change({ state: "merged" });
    const last = await read(third.memory);
    expect(last.pullRequest.state).toBe("merged");
    // What is not asked for any more is forgotten.
    expect(Object.keys(last.memory)).toHaveLength(kind === "gitea" ? 0 : 1);
  });

  test("that is not there, or not with this token, fails with its kind", async () => {
    await expect(read({}, { number: 2 })).rejects.toMatchObject({ kind: "not_found" });
    await expect(read({}, { repository: "o/absent" })).rejects.toMatchObject({ kind: "not_found" });
    await expect(read({}, { token: "revoked" })).rejects.toMatchObject({ kind: "unauthorized" });
    const before = host.requests.length;
    await expect(read({}, { repository: "../o" })).rejects.toMatchObject({ kind: "not_found" });
    expect(host.requests).toHaveLength(before);
  });

  test("is asked for later where the host says so", async () => {
    host.fail({ status: 429, headers: { "retry-after": "90" }, body: { message: "no" } });
    await expect(read()).rejects.toMatchObject({ kind: "rate_limited", retryAfterMs: 90_000 });
  });

  test.each([
    [{ number: 1 }],
    [{ state: "odd", head: { ref: "b", sha: "0".repeat(40) }, base: { ref: "main" } }],
    [{ state: "open", head: { ref: "b", sha: "../x" }, base: { ref: "main" } }],
    [{ state: "opened", source_branch: "b", target_branch: "main", sha: "a/../b" }],
    [{ state: "opened", source_branch: "b\n", target_branch: "main", sha: "0".repeat(40) }],
    [[]],
    [null],
  ])("that is answered as %j is unreadable", async (body) => {
    host.fail({ status: 200, body: body ?? "null", headers: { "content-type": "application/json" } });
    await expect(read()).rejects.toMatchObject({ kind: "unreadable" });
  });

  test("is unreadable where a host says that nothing changed and was not asked", async () => {
    host.fail({ status: 304 });
    await expect(read()).rejects.toMatchObject({ kind: "unreadable" });
  });
});

test("checks of several sources are as bad as the worst of them", () => {
  expect(combineChecks([])).toBe("none");
  expect(combineChecks(["none", "passed"])).toBe("passed");
  expect(combineChecks(["passed", "pending"])).toBe("pending");
  expect(combineChecks(["pending", "failed", "passed"])).toBe("failed");
});

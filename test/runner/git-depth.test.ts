import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { GitInitializer_CloneTargetMode as Mode } from "#gen/service/v1/environment_pb.js";
import { commitAll } from "../../src/runner/git/git-commit.ts";
import { pushBranch } from "../../src/runner/git/git-push.ts";
import { withSnapshot } from "../../src/runner/git/git-snapshot.ts";
import { messageWithTrailers } from "../../src/runner/git/git-trailers.ts";
import { CachingRunner, type ClonedRepository } from "../harness/caching-runner.ts";
import { type BareRepository, bareRepository } from "../harness/git-repository.ts";
import { realGit } from "../harness/runner-git.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";

afterAll(stopAll);

let runner: CachingRunner;
let remote: BareRepository;
const commits: string[] = [];
beforeAll(async () => {
  runner = await CachingRunner.start();
  remote = bareRepository(temporaryFolder(), { "a.txt": "0\n" });
  commits.push(remote.find("main") ?? "");
  for (let number = 1; number < 6; number++) commits.push(remote.commit({ "a.txt": `${number}\n` }));
  remote.commit({ "b.txt": "b\n" }, { branch: "other", from: "main" });
  remote.git("tag", "-a", "-m", "annotated", "v1", commits[3] ?? "");
});

const countOf = ({ git }: ClonedRepository) => Number(git("rev-list", "--count", "HEAD"));
const refsOf = ({ git }: ClonedRepository) => git("for-each-ref", "--format=%(refname)").split("\n");
const isShallow = ({ folder }: ClonedRepository) => existsSync(join(folder, ".git/shallow"));

describe("a clone with a depth", () => {
  test.each([
    ["the default branch", Mode.REMOTE_HEAD, "", 5, ["refs/heads/main", "refs/remotes/origin/main"]],
    ["a branch", Mode.REMOTE_BRANCH, "other", undefined, ["refs/heads/other", "refs/remotes/origin/other"]],
    ["a new branch", Mode.LOCAL_BRANCH, "work", 5, ["refs/heads/work", "refs/remotes/origin/main"]],
    ["a tag", Mode.REMOTE_TAG, "v1", 3, ["refs/tags/v1"]],
  ])(
    "has so many commits of what it checks out, and no other refs: %s",
    async (_, targetMode, cloneTarget, at, refs) => {
      const cloned = await runner.clone({ remoteUri: remote.url, targetMode, cloneTarget, depth: 2 });
      expect([countOf(cloned), isShallow(cloned), refsOf(cloned)]).toEqual([2, true, refs]);
      const tip = at === undefined ? remote.find("other") : commits[at];
      expect(cloned.git("rev-parse", "HEAD")).toBe(tip);
      expect(cloned.git("status", "--porcelain")).toBe("");
      expect(runner.repositories()).toEqual([]);
    },
  );

  test("has so many commits of a commit that is named whole", async () => {
    const [, , cloneTarget = ""] = commits;
    const target = { targetMode: Mode.REMOTE_COMMIT, cloneTarget, depth: 1 };
    const cloned = await runner.clone({ remoteUri: remote.url, ...target });
    expect([countOf(cloned), isShallow(cloned)]).toEqual([1, true]);
    expect(readFileSync(join(cloned.folder, "a.txt"), "utf8")).toBe("2\n");
    expect(cloned.has(commits[1] ?? "")).toBe(false);
  });

  test("has all where the whole history has fewer, and may be pulled on", async () => {
    const cloned = await runner.clone({ remoteUri: remote.url, depth: 100 });
    expect([countOf(cloned), isShallow(cloned)]).toEqual([6, false]);
    cloned.git("fetch", "-q");
    expect(refsOf(cloned)).toContain("refs/remotes/origin/other");
  });

  test.each([
    ["without one", { depth: 0 }],
    ["for a commit that is named by the beginning of its hash", { depth: 1, targetMode: Mode.REMOTE_COMMIT }],
  ])("has all %s", async (_, spec) => {
    const cloneTarget = commits[4]?.slice(0, 10) ?? "";
    const cloned = await runner.clone({ remoteUri: remote.url, cloneTarget, ...spec });
    expect(isShallow(cloned)).toBe(false);
    expect(refsOf(cloned)).toEqual(expect.arrayContaining(["refs/remotes/origin/other", "refs/tags/v1"]));
  });

  test.each([
    ["a branch", Mode.REMOTE_BRANCH, "absent"],
    ["a tag", Mode.REMOTE_TAG, "absent"],
    ["a commit", Mode.REMOTE_COMMIT, "0123456789".repeat(4)],
  ])("is refused when the remote does not have it: %s", async (_, targetMode, cloneTarget) => {
    await expect(
      runner.clone({ remoteUri: remote.url, targetMode, cloneTarget, depth: 1 }),
    ).rejects.toMatchObject({ reason: "revision_not_found" });
  });
});

describe("a pull request from a clone with a depth of 1", () => {
  const EARLIER = { workflowId: "w", executionId: "earlier", actionId: "earlier" };
  const own = messageWithTrailers("Earlier", EARLIER);

  /** Changes a file, commits and pushes as a step does; what happened to the branch. */
  async function propose(at: BareRepository, branch: string) {
    const cloned = await runner.clone({ remoteUri: at.url, depth: 1 });
    expect(countOf(cloned)).toBe(1);
    writeFileSync(join(cloned.folder, "a.txt"), "changed\n");
    const tools = await realGit();
    const author = { name: "Grace", email: "grace@example.org" };
    const trailers = { workflowId: "w", executionId: "e", actionId: "a" };
    return withSnapshot(tools, cloned.folder, async ({ repository }) => {
      const commit = await commitAll(tools, { repository }, { message: "Change", author, trailers });
      const base = cloned.git("rev-parse", "HEAD");
      const target = { repository, remoteUri: at.url, credentialFor: async () => undefined };
      const outcome = await pushBranch(tools, { ...target, commit, base, branch, trailers });
      expect(at.find(branch)).toBe(commit);
      return { outcome, count: Number(at.git("rev-list", "--count", branch)) };
    });
  }
  const repositoryWith = (count: number) => {
    const repository = bareRepository(temporaryFolder(), { "a.txt": "0\n" });
    const hashes = Array.from({ length: count }, (_, at) => repository.commit({ "a.txt": `${at + 1}\n` }));
    return { repository, hashes };
  };

  test("makes a branch with the whole history behind it", async () => {
    const { repository } = repositoryWith(5);
    expect(await propose(repository, "topic")).toEqual({ outcome: "created", count: 7 });
  });

  test("replaces what an earlier execution pushed from an older commit, and fetches what that takes", async () => {
    const { repository, hashes } = repositoryWith(5);
    repository.commit({ "b.txt": "b\n" }, { branch: "topic", from: hashes[1] ?? "", message: own });
    expect(await propose(repository, "topic")).toEqual({ outcome: "replaced", count: 7 });
  });

  test("advances a branch that its history contains, however far back", async () => {
    const { repository, hashes } = repositoryWith(60);
    repository.setRef("refs/heads/topic", hashes[1] ?? "");
    expect(await propose(repository, "topic")).toEqual({ outcome: "advanced", count: 62 });
  });

  test.each([
    ["at its tip", 0],
    ["behind more of the workflow's than are fetched at first", 55],
  ])("leaves a branch alone that has a commit of somebody else: %s", async (_, ownCommits) => {
    const { repository, hashes } = repositoryWith(3);
    const theirs = { branch: "topic", from: hashes[0] ?? "" };
    repository.commit({ "theirs.txt": "t\n" }, { ...theirs, message: "Theirs" });
    for (let number = 0; number < ownCommits; number++) {
      repository.commit({ "b.txt": `${number}\n` }, { ...theirs, message: own });
    }
    const tip = repository.find("topic");
    await expect(propose(repository, "topic")).rejects.toMatchObject({ reason: "branch_taken" });
    expect(repository.find("topic")).toBe(tip);
  });
});

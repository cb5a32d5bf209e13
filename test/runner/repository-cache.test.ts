import { chmodSync, existsSync, lstatSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, test } from "@jest/globals";
import { GitInitializer_CloneTargetMode as Mode } from "#gen/service/v1/environment_pb.js";
import { CachingRunner } from "../harness/caching-runner.ts";
import { type BareRepository, bareRepository } from "../harness/git-repository.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";

afterAll(stopAll);

let runner: CachingRunner;
let remote: BareRepository;
let remoteUri: string;
beforeEach(async () => {
  runner = await CachingRunner.start();
  remote = bareRepository(temporaryFolder(), { "a.txt": "one\n" });
  remoteUri = remote.url;
});

const REUSED = ["ls-remote", "checkout"];
const packsOf = (folder: string) => join(folder, ".git/objects/pack");
const listPacks = (folder: string) =>
  readdirSync(packsOf(folder)).filter((name) => /\.(pack|idx)$/.test(name));

describe("a workspace of a repository that was cloned before", () => {
  test("takes one look at the remote and nothing else from it", async () => {
    remote.git("tag", "-a", "-m", "annotated", "v1", "main");
    remote.commit({ "b.txt": "b\n" }, { branch: "feature/deep", from: "main" });
    const first = await runner.clone({ remoteUri });
    runner.takeCommands();
    const second = await runner.clone({ remoteUri });
    expect(runner.takeCommands()).toEqual(REUSED);
    expect(second.git("status", "--porcelain", "--branch")).toBe("## main...origin/main");
    const refs = (of: typeof first) =>
      of.git("for-each-ref", "--format=%(objectname) %(refname) %(upstream)");
    expect(refs(second)).toBe(refs(first));
    expect(
      refs(second)
        .split("\n")
        .map((line) => line.split(" ")[1]),
    ).toEqual([
      "refs/heads/main",
      "refs/remotes/origin/feature/deep",
      "refs/remotes/origin/main",
      "refs/tags/v1",
    ]);
    expect(second.git("config", "--list", "--local")).toBe(first.git("config", "--list", "--local"));
    expect(second.git("fsck", "--full", "--strict")).toBe("");
    expect(runner.warnings).toEqual([]);
  });

  test.each([
    [Mode.REMOTE_BRANCH, "feature/deep", "refs/heads/feature/deep"],
    [Mode.REMOTE_TAG, "v1", undefined],
    [Mode.LOCAL_BRANCH, "topic", "refs/heads/topic"],
  ])("has the target that it asks for: %s %s", async (targetMode, cloneTarget, head) => {
    remote.git("tag", "-a", "-m", "annotated", "v1", "main");
    const tip = remote.commit({ "b.txt": "b\n" }, { branch: "feature/deep", from: "main" });
    await runner.clone({ remoteUri });
    runner.takeCommands();
    const { git, folder } = await runner.clone({ remoteUri, targetMode, cloneTarget });
    expect(runner.takeCommands()).not.toContain("fetch");
    const commit = targetMode === Mode.REMOTE_BRANCH ? tip : remote.find("main");
    expect(git("rev-parse", "HEAD")).toBe(commit);
    expect(readFileSync(join(folder, ".git/HEAD"), "utf8").trim()).toBe(head ? `ref: ${head}` : commit);
    expect(git("status", "--porcelain")).toBe("");
  });

  test("has files of its own, and borrows nothing", async () => {
    const workspaces = [await runner.clone({ remoteUri }), await runner.clone({ remoteUri })];
    const folders = [...workspaces.map(({ folder }) => packsOf(folder)), ...runner.repositories()];
    const packs = listPacks(workspaces[0]?.folder ?? "");
    expect(packs).toHaveLength(2);
    for (const name of packs) {
      const stats = folders.map((folder) => lstatSync(join(folder, name)));
      expect(new Set(stats.map(({ ino }) => ino)).size).toBe(3);
      expect(stats.map(({ nlink }) => nlink)).toEqual([1, 1, 1]);
    }
    for (const { folder } of workspaces) {
      expect(existsSync(join(folder, ".git/objects/info/alternates"))).toBe(false);
    }
  });

  test("is not changed by what another work does with its objects, nor is the cache", async () => {
    const first = await runner.clone({ remoteUri });
    const [second, third] = [await runner.clone({ remoteUri }), await runner.clone({ remoteUri })];
    for (const { folder } of [first, second]) {
      for (const name of listPacks(folder)) {
        chmodSync(join(packsOf(folder), name), 0o600);
        writeFileSync(join(packsOf(folder), name), "overwritten");
      }
    }
    runner.takeCommands();
    const fourth = await runner.clone({ remoteUri });
    expect(runner.takeCommands()).toEqual(REUSED);
    for (const { git } of [third, fourth]) expect(git("fsck", "--full")).toBe("");
    expect(runner.warnings).toEqual([]);
  });
});

describe("a remote that moves", () => {
  test("is asked for what is new once", async () => {
    await runner.clone({ remoteUri });
    const next = remote.commit({ "a.txt": "two\n" });
    runner.takeCommands();
    const second = await runner.clone({ remoteUri });
    expect(runner.takeCommands()).toEqual(["ls-remote", "fetch", "for-each-ref", "rev-list", "checkout"]);
    expect(second.git("rev-parse", "HEAD", "origin/main")).toBe(`${next}\n${next}`);
    const third = await runner.clone({ remoteUri });
    expect(runner.takeCommands()).toEqual(REUSED);
    expect(third.git("rev-parse", "HEAD", "origin/main")).toBe(`${next}\n${next}`);
    expect(third.git("fsck", "--full")).toBe("");
  });

  test("is not asked for commits where only names are new", async () => {
    await runner.clone({ remoteUri });
    remote.setRef("refs/heads/other", remote.find("main") ?? "");
    runner.takeCommands();
    const { git } = await runner.clone({ remoteUri, targetMode: Mode.REMOTE_BRANCH, cloneTarget: "other" });
    expect(runner.takeCommands()).toEqual(REUSED);
    expect(git("rev-parse", "--abbrev-ref", "HEAD@{upstream}")).toBe("origin/other");
    await runner.clone({ remoteUri });
    expect(runner.takeCommands()).toEqual(REUSED);
  });

  test("gives no ref that it has deleted, and no object that only that reached", async () => {
    const gone = remote.commit({ "secret.txt": "s\n" }, { branch: "gone", from: "main" });
    const kept = remote.commit({ "kept.txt": "k\n" }, { branch: "merged", from: "main" });
    remote.git("tag", "-a", "-m", "annotated", "v1", "main");
    const [tag, blob] = [remote.find("v1") ?? "", remote.find(`${gone}:secret.txt`) ?? ""];
    const first = await runner.clone({ remoteUri });
    expect([gone, tag, blob, kept].map(first.has)).toEqual([true, true, true, true]);
    remote.setRef("refs/heads/main", kept);
    for (const ref of ["refs/heads/gone", "refs/heads/merged", "refs/tags/v1"]) {
      remote.git("update-ref", "-d", ref);
    }
    runner.takeCommands();
    for (const commands of [["ls-remote", "rev-list", "repack", "checkout"], REUSED]) {
      const { git, has } = await runner.clone({ remoteUri });
      expect(runner.takeCommands()).toEqual(commands);
      expect([gone, tag, blob, kept].map(has)).toEqual([false, false, false, true]);
      expect(git("for-each-ref", "--format=%(refname)")).toBe("refs/heads/main\nrefs/remotes/origin/main");
      expect(git("fsck", "--full", "--unreachable")).toBe("");
    }
  });

  test("gives nothing of a branch that it has rewritten but what is there now", async () => {
    const first = remote.find("main") ?? "";
    const lost = remote.commit({ "a.txt": "lost\n" });
    await runner.clone({ remoteUri });
    remote.setRef("refs/heads/main", first);
    const next = remote.commit({ "a.txt": "other\n" });
    for (const _ of ["once", "again"]) {
      const { git, has } = await runner.clone({ remoteUri });
      expect(git("rev-parse", "HEAD")).toBe(next);
      expect([first, lost, next].map(has)).toEqual([true, false, true]);
    }
  });

  test("has its packs joined once there are many", async () => {
    for (let number = 0; number <= 21; number++) {
      remote.commit({ "a.txt": `${number}\n` });
      await runner.clone({ remoteUri });
    }
    runner.takeCommands();
    const { folder, git } = await runner.clone({ remoteUri });
    expect(runner.takeCommands()).toEqual(REUSED);
    expect(listPacks(folder).length).toBeLessThan(20);
    expect(git("rev-list", "--count", "HEAD")).toBe("23");
    // Files of joined packs are gone.
    const [cached = ""] = runner.repositories();
    expect(readdirSync(cached).sort()).toEqual([...listPacks(folder), "state.json"].sort());
  });
});

describe("what other work fetched", () => {
  test("is in no other workspace: a commit that no branch or tag reaches", async () => {
    remote.git("config", "uploadpack.allowAnySHA1InWant", "true");
    const lost = remote.commit({ "lost.txt": "l\n" }, { branch: "temporary", from: "main" });
    remote.setRef("refs/pull/7/head", lost);
    remote.git("update-ref", "-d", "refs/heads/temporary");
    const pull = { remoteUri, targetMode: Mode.REMOTE_COMMIT, cloneTarget: lost };
    for (const _ of ["first", "after others"]) {
      expect((await runner.clone(pull)).has(lost)).toBe(true);
      const other = await runner.clone({ remoteUri });
      expect([other.has(lost), other.git("fsck", "--full", "--unreachable")]).toEqual([false, ""]);
    }
  });
});

describe("works at the same time", () => {
  test("fetch a repository once", async () => {
    const workspaces = await Promise.all(Array.from({ length: 8 }, () => runner.clone({ remoteUri })));
    expect(runner.takeCommands().filter((command) => command === "fetch")).toEqual(["fetch"]);
    const next = remote.commit({ "a.txt": "two\n" });
    workspaces.push(...(await Promise.all(Array.from({ length: 8 }, () => runner.clone({ remoteUri })))));
    expect(runner.takeCommands().filter((command) => command === "fetch")).toEqual(["fetch"]);
    for (const { git } of workspaces) expect(git("fsck", "--full")).toBe("");
    expect(workspaces.at(-1)?.git("rev-parse", "HEAD")).toBe(next);
    expect(runner.warnings).toEqual([]);
  });
});

test("a repository without commits is not cached", async () => {
  const empty = bareRepository(temporaryFolder());
  const { folder } = await runner.clone({ remoteUri: empty.url });
  expect(readFileSync(join(folder, ".git/HEAD"), "utf8")).toBe("ref: refs/heads/main\n");
  expect(runner.repositories()).toEqual([]);
});

test("a repository in which git finds fault is cloned as without a cache, and never cached", async () => {
  const tree = remote.git("rev-parse", "main^{tree}");
  const text = `tree ${tree}\nauthor nobody 1 +0000\ncommitter nobody 1 +0000\n\nno address\n`;
  writeFileSync(join(remote.folder, "commit"), text);
  const faulty = remote.git(
    "hash-object",
    "-t",
    "commit",
    "-w",
    "--literally",
    join(remote.folder, "commit"),
  );
  remote.setRef("refs/heads/main", faulty);
  for (const fetches of [2, 1]) {
    const { git } = await runner.clone({ remoteUri });
    expect(git("rev-parse", "HEAD")).toBe(faulty);
    expect(runner.takeCommands().filter((command) => command === "fetch")).toHaveLength(fetches);
    expect(runner.repositories()).toEqual([]);
  }
});

test("the fetch of a repository shows git's progress", async () => {
  const lines: string[] = [];
  await runner.clone({ remoteUri }, { onProgress: (line) => lines.push(line) });
  expect(lines.join("\n")).toMatch(/^Receiving objects: +\d+% \(\d+\/\d+\)/m);
});

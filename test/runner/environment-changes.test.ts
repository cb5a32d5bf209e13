import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import {
  DiffBase,
  type EnvironmentFileDiff,
  EnvironmentFileDiff_Kind as Kind,
  EnvironmentFileDiff_PatchOmission as Omission,
} from "#gen/service/v1/environment_changes_pb.js";
import { WorkflowStep_PullRequestSchema } from "#gen/service/v1/workflow_pb.js";
import { Secrets } from "../../src/domain/secrets.ts";
import { beginTurn, reportChanges } from "../../src/runner/changes/environment-report.ts";
import { keepIndexes } from "../../src/runner/changes/tree-repository.ts";
import type { GitTools } from "../../src/runner/git/git-tools.ts";
import type { StepRun } from "../../src/runner/steps/action-step.ts";
import { openPullRequest } from "../../src/runner/steps/step-pull-request.ts";
import { realGit } from "../harness/runner-git.ts";
import { temporaryFolder } from "../harness/server.ts";

const LARGE = 1_048_577;

let tools: GitTools;
let workspace: { folder: string; tree: string; home: string };
let tree: string;
let secrets: Secrets;
let commit: string;
beforeAll(async () => {
  tools = await realGit();
});
beforeEach(async () => {
  const folder = temporaryFolder();
  workspace = { folder, tree: join(folder, "tree"), home: join(folder, "home") };
  tree = join(workspace.tree, "ship");
  mkdirSync(tree, { recursive: true });
  run("init", "--quiet", "--initial-branch=main");
  write("kept.txt", "one\ntwo\nthree\n");
  write("gone.txt", "gone\n");
  write("named.txt", "a name\nwith\nlines\nenough\nto be found\n");
  write(".gitignore", "ignored\n");
  commitAll();
  commit = run("rev-parse", "HEAD");
  secrets = new Secrets();
  await keepIndexes(workspace, checkouts());
});

const run = (...args: string[]) =>
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.org", ...args], {
    cwd: tree,
    encoding: "utf8",
  }).trim();
const write = (path: string, text: string | Buffer) => writeFileSync(join(tree, path), text);
const commitAll = () => {
  run("add", "--all");
  run("commit", "--quiet", "--message=a commit");
};
const checkouts = () => [{ location: "ship", remoteUri: "https://git.example.org/ship.git", commit }];
const watched = () => ({ environmentId: "", workspace, checkouts: checkouts(), secrets });
const look = async (isEnd = true) => {
  const { repositories, diffs } = await reportChanges(tools, watched(), { isEnd });
  const filesOf = (base: DiffBase) =>
    (diffs?.find((each) => each.base === base)?.files ?? []) as EnvironmentFileDiff[];
  return {
    repository: repositories?.[0],
    files: filesOf(DiffBase.ENVIRONMENT),
    turn: filesOf(DiffBase.LAST_TURN),
    leftOut: diffs?.[0]?.filesLeftOut,
  };
};
const kindsOf = (files: readonly EnvironmentFileDiff[]) => files.map(({ path, kind }) => [path, Kind[kind]]);

describe("a look at a working tree", () => {
  test("shows no other repository of the machine by a link in its place", async () => {
    write("private.txt", "private\n");
    const elsewhere = join(temporaryFolder(), "elsewhere");
    renameSync(tree, elsewhere);
    expect((await look()).repository?.problem).toContain("its .git is not a folder");
    symlinkSync(elsewhere, tree);
    const { repository, files } = await look();
    expect(repository?.problem).toContain("the folder of the repository is a link");
    expect(files).toEqual([]);
    const run = {
      checkouts: checkouts(),
      workspace,
      folder: tree,
      action: {},
      assignment: { tools: { git: tools } },
    } as unknown as StepRun;
    await expect(openPullRequest(run, create(WorkflowStep_PullRequestSchema))).rejects.toMatchObject({
      reason: "repository_replaced",
    });
    // Of work that a pull request from a fork began nothing is looked at.
    const ofEarlierRelease = { spec: { workflowActionId: "action" } };
    for (const environment of [{ metadata: { secretsWithheld: true } }, ofEarlierRelease]) {
      const ofFork = { ...run, action: { environment } };
      await expect(
        openPullRequest(ofFork as unknown as StepRun, create(WorkflowStep_PullRequestSchema)),
      ).rejects.toMatchObject({ reason: "begun_by_fork" });
    }
    unlinkSync(tree);
    renameSync(elsewhere, tree);
    expect(kindsOf((await look()).files)).toEqual([["ship/private.txt", "ADDED"]]);
  });

  test("shows what was committed and what was not, with renames and counts", async () => {
    run("checkout", "--quiet", "-b", "fix");
    write("kept.txt", "one\n2\nthree\n");
    commitAll();
    unlinkSync(join(tree, "gone.txt"));
    renameSync(join(tree, "named.txt"), join(tree, "renamed.txt"));
    write("new.txt", "new\n");
    write("ignored", "not shown\n");
    const index = readFileSync(join(tree, ".git/index"));
    const { repository, files } = await look();
    expect(kindsOf(files)).toEqual([
      ["ship/gone.txt", "DELETED"],
      ["ship/kept.txt", "CHANGED"],
      ["ship/new.txt", "ADDED"],
      ["ship/renamed.txt", "RENAMED"],
    ]);
    expect(files[1]).toMatchObject({
      patch: "@@ -1,3 +1,3 @@\n one\n-2\n+two\n three\n".replace("-2\n+two", "-two\n+2"),
    });
    expect(files[3]).toMatchObject({ oldPath: "ship/named.txt", patch: "" });
    expect(repository).toMatchObject({
      folder: "ship",
      baseCommit: commit,
      headCommit: run("rev-parse", "HEAD"),
      branch: "fix",
      commitsAhead: 1,
      counts: {
        changedFiles: 1,
        addedFiles: 1,
        deletedFiles: 1,
        renamedFiles: 1,
        addedLines: 2n,
        deletedLines: 2n,
      },
    });
    // Nothing is written into the tree.
    expect(readFileSync(join(tree, ".git/index"))).toEqual(index);
    expect((await look()).files).toEqual(files);
  });

  test("compares a turn with what the one before has left, and the first with what was checked out", async () => {
    await beginTurn(watched());
    write("first.txt", "first\n");
    expect(kindsOf((await look()).turn)).toEqual([["ship/first.txt", "ADDED"]]);
    await beginTurn(watched());
    write("first.txt", "changed\n");
    write("large", Buffer.alloc(LARGE));
    expect(kindsOf((await look(false)).turn)).toEqual([
      ["ship/first.txt", "CHANGED"],
      ["ship/large", "ADDED"],
    ]);
    const { files, turn } = await look();
    expect(kindsOf(turn)).toEqual([
      ["ship/first.txt", "CHANGED"],
      ["ship/large", "ADDED"],
    ]);
    expect(kindsOf(files)).toEqual([
      ["ship/first.txt", "ADDED"],
      ["ship/large", "ADDED"],
    ]);
    await beginTurn(watched());
    expect((await look()).turn).toEqual([]);
    await beginTurn(watched());
    rmSync(join(tree, "large"));
    expect(kindsOf((await look()).turn)).toEqual([["ship/large", "DELETED"]]);
  });

  test("tells binary and large files by their size", async () => {
    write("binary", Buffer.from([0, 1, 2]));
    write("large", Buffer.alloc(LARGE, "a"));
    write("kept.txt", Buffer.alloc(LARGE, "b"));
    const { files } = await look();
    expect(files).toMatchObject([
      { path: "ship/binary", kind: Kind.ADDED, sizeBytes: 3n, patch: "", patchOmission: Omission.BINARY },
      { path: "ship/kept.txt", kind: Kind.CHANGED, sizeBytes: BigInt(LARGE), patchOmission: Omission.LARGE },
      { path: "ship/large", kind: Kind.ADDED, sizeBytes: BigInt(LARGE), patchOmission: Omission.LARGE },
    ]);
    write("kept.txt", "one\ntwo\nthree\n");
    expect(kindsOf((await look()).files)).toEqual([
      ["ship/binary", "ADDED"],
      ["ship/large", "ADDED"],
    ]);
  });

  test("tells a large file that is as it was before no more", async () => {
    write("large", Buffer.alloc(LARGE, "a"));
    commitAll();
    commit = run("rev-parse", "HEAD");
    await keepIndexes(workspace, checkouts());
    for (const [content, kinds] of [
      ["b", ["CHANGED"]],
      ["a", []],
      ["c", ["CHANGED"]],
    ] as const) {
      write("large", Buffer.alloc(LARGE, content));
      expect(kindsOf((await look()).files)).toEqual(kinds.map((kind) => ["ship/large", kind]));
    }
    rmSync(join(tree, "large"));
    expect(kindsOf((await look()).files)).toEqual([["ship/large", "DELETED"]]);
  });

  test("masks secrets in patches and paths, also of several lines", async () => {
    secrets.add("line of a key\nanother line");
    write("new.txt", "x line of a key\nanother line\n");
    write("line of a key", "");
    const { files } = await look();
    expect(files.map(({ path }) => path)).toEqual(["ship/***", "ship/new.txt"]);
    expect(files[1]?.patch).toBe("@@ -0,0 +1,2 @@\n+x ***\n+***\n");
  });

  test("keeps to what a report may hold", async () => {
    for (let at = 0; at < 2_010; at++) write(`file ${at}`, `${"x".repeat(2_000)}\n`);
    const { files, leftOut, repository } = await look();
    expect([files.length, leftOut, repository?.counts?.addedFiles]).toEqual([2_000, 10, 2_010]);
    const bytes = files.reduce((sum, { patch, path }) => sum + patch.length + path.length, 0);
    expect(bytes).toBeLessThan(2_500_000);
    expect(files.at(-1)).toMatchObject({ patch: "", patchOmission: Omission.FULL, addedLines: 1n });
  });
});

describe("a tree made to cheat", () => {
  /** A program that leaves a mark when it is started. */
  const trap = (name: string) => {
    const mark = join(workspace.folder, `mark-${name}`);
    const file = join(workspace.folder, `trap-${name}`);
    writeFileSync(file, `#!/bin/sh\ntouch ${mark}\ncat\n`);
    chmodSync(file, 0o755);
    return { file, isSprung: () => existsSync(mark) };
  };

  test("starts no hook, filter, driver, monitor or remote program", async () => {
    const traps = ["fsmonitor", "filter", "process", "diff", "textconv", "hook", "merge"].map(trap);
    const [fsmonitor, filter, process, diff, textconv, hook] = traps.map(({ file }) => file);
    const set = (name: string, value = "") => run("config", name, value);
    set("core.fsmonitor", fsmonitor);
    set("filter.evil.clean", filter);
    set("filter.evil.process", process);
    set("filter.evil.required", "true");
    set("diff.evil.command", diff);
    set("diff.evil.textconv", textconv);
    set("diff.external", diff);
    set("core.hooksPath", workspace.folder);
    writeFileSync(join(tree, ".git/hooks/post-index-change"), `#!/bin/sh\n${hook}\n`, { mode: 0o755 });
    write(".gitattributes", "* filter=evil diff=evil\n");
    write("kept.txt", "one\ntwo\n3\n");
    const { files } = await look();
    expect(kindsOf(files)).toEqual([
      ["ship/.gitattributes", "ADDED"],
      ["ship/kept.txt", "CHANGED"],
    ]);
    expect(traps.filter(({ isSprung }) => isSprung())).toEqual([]);
  });

  test("hides no change by attributes, or by marks of its index", async () => {
    write(".gitattributes", "* -diff\n");
    write(".git/info/attributes", "* binary\n");
    run("update-index", "--assume-unchanged", "kept.txt");
    run("update-index", "--skip-worktree", "named.txt");
    write("kept.txt", "changed\n");
    write("named.txt", "changed\n");
    const { files } = await look();
    expect(kindsOf(files)).toEqual([
      ["ship/.gitattributes", "ADDED"],
      ["ship/kept.txt", "CHANGED"],
      ["ship/named.txt", "CHANGED"],
    ]);
    expect(files[1]?.patch).toContain("+changed\n");
  });

  test.each([
    ["a .git file", () => writeFileSync(join(tree, ".git"), "gitdir: /elsewhere\n")],
    ["a link in its place", () => symlinkSync(join(tree, "../.."), join(tree, ".git"))],
  ])("is reported as a problem: %s", async (_, replace) => {
    renameSync(join(tree, ".git"), join(workspace.folder, "moved"));
    replace();
    const { repository, files } = await look();
    expect(repository?.problem).toContain("not the one that was checked out");
    expect(files).toEqual([]);
  });

  test("is reported as a problem: objects elsewhere", async () => {
    writeFileSync(join(tree, ".git/objects/info/alternates"), "/elsewhere\n");
    expect((await look()).repository?.problem).toContain("alternates");
  });

  test("is not looked into where it holds another repository, and no link is followed", async () => {
    mkdirSync(join(tree, "inner"));
    execFileSync("git", ["init", "--quiet", join(tree, "inner")]);
    writeFileSync(join(tree, "inner/secret"), "not shown");
    symlinkSync("/etc/hostname", join(tree, "link"));
    rmSync(join(tree, "gone.txt"));
    execFileSync("mkfifo", [join(tree, "gone.txt")]);
    chmodSync(join(tree, "kept.txt"), 0o755);
    const { files } = await look();
    expect(kindsOf(files)).toEqual([
      ["ship/gone.txt", "CHANGED"],
      ["ship/inner", "ADDED"],
      ["ship/kept.txt", "CHANGED"],
      ["ship/link", "ADDED"],
    ]);
    expect(files[3]?.patch).toBe("@@ -0,0 +1 @@\n+/etc/hostname\n\\ No newline at end of file\n");
    expect(files[2]).toMatchObject({ oldMode: "100644", newMode: "100755", patch: "" });
  });

  test("has names and lines that pass for others, shown as they are", async () => {
    const evil = "a\n+b\u001b[2J\tdiff --git x";
    write(evil, "x\rdiff --git a/kept.txt b/kept.txt\n@@ -1 +1 @@\r@@ -9 +9 @@\n");
    write("z", "last\n");
    writeFileSync(Buffer.concat([Buffer.from(`${tree}/f`), Buffer.from([0xff])]), "");
    const { files } = await look();
    expect(files.find(({ path }) => path === `ship/${evil}`)?.patch).toBe(
      "@@ -0,0 +1,2 @@\n+x\rdiff --git a/kept.txt b/kept.txt\n+@@ -1 +1 @@\r@@ -9 +9 @@\n",
    );
    expect(files.at(-1)).toMatchObject({ path: "ship/z", patch: "@@ -0,0 +1 @@\n+last\n" });
    expect(kindsOf(files)).toContainEqual(["ship/f\ufffd", "ADDED"]);
  });

  test("cannot damage what the runner keeps for good", async () => {
    write("new.txt", "new\n");
    const before = await look();
    writeFileSync(join(workspace.folder, "changes/0/index"), "broken");
    expect((await look()).files).toEqual(before.files);
    writeFileSync(join(workspace.folder, "changes/turns.json"), "{");
    expect((await look()).files).toEqual(before.files);
  });
});

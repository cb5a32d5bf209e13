import { execFileSync } from "node:child_process";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { Secrets } from "../../src/domain/secrets.ts";
import { beginTurn, reportChanges } from "../../src/runner/changes/environment-report.ts";
import { keepIndexes } from "../../src/runner/changes/tree-repository.ts";
import { withStamps } from "../../src/runner/changes/tree-stamp.ts";
import type { Checkout } from "../../src/runner/git/git-checkout.ts";
import type { GitTools } from "../../src/runner/git/git-tools.ts";
import { markerOf, type Workspace } from "../../src/runner/steps/workspace.ts";
import { realGit } from "../harness/runner-git.ts";
import { temporaryFolder } from "../harness/server.ts";

let tools: GitTools;
/** Cannot start git. */
let toolsWithoutGit: GitTools;
let workspace: Workspace;
let tree: string;
let checkouts: readonly Checkout[];
beforeAll(async () => {
  tools = await realGit();
  const run = () => Promise.reject(new Error("git was started"));
  toolsWithoutGit = { ...tools, programs: { ...tools.programs, run } };
});
beforeEach(async () => {
  const folder = temporaryFolder();
  workspace = { folder, tree: join(folder, "tree"), home: join(folder, "home") };
  tree = join(workspace.tree, "group/ship");
  mkdirSync(join(tree, "inside"), { recursive: true });
  git("init", "--quiet", "--initial-branch=main");
  writeFileSync(join(tree, "file.txt"), "one\n");
  writeFileSync(join(tree, "inside/file.txt"), "two\n");
  writeFileSync(join(tree, ".gitignore"), "ignored\n");
  git("add", "--all");
  git("commit", "--quiet", "--message=a commit");
  const commit = git("rev-parse", "HEAD");
  const made = [
    { location: "group/ship", remoteUri: "https://git.example.org/ship.git", commit, branch: "main" },
  ];
  await keepIndexes(workspace, made);
  checkouts = withStamps(workspace, made);
  markComplete();
});

const git = (...args: string[]) =>
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.org", ...args], {
    cwd: tree,
    encoding: "utf8",
  }).trim();
const look = (with_: GitTools, of = checkouts, isEnd = true) =>
  reportChanges(with_, { environmentId: "", workspace, checkouts: of, secrets: new Secrets() }, { isEnd });

/** Writes the marker in a later tick of the clock than the checkout. */
function markComplete(): void {
  const newest = BigInt(checkouts[0]?.stamp?.newest ?? 0);
  do writeFileSync(markerOf(workspace), "[]");
  while (lstatSync(markerOf(workspace), { bigint: true }).ctimeNs <= newest);
}

describe("a checkout that nothing has touched", () => {
  test("is reported as git would, which is not started for it", async () => {
    const withoutStamps = checkouts.map(({ stamp: _, ...checkout }) => checkout);
    const byGit = await look(tools, withoutStamps, false);
    expect(byGit.repositories?.[0]).toMatchObject({ branch: "main", headCommit: checkouts[0]?.commit });
    expect(await look(toolsWithoutGit)).toEqual(byGit);
    await beginTurn({ workspace });
    expect(await look(toolsWithoutGit)).toEqual(byGit);
    writeFileSync(join(tree, "file.txt"), "1\n");
    await beginTurn({ workspace });
    const { diffs } = await look(tools);
    expect(diffs?.map(({ files }) => files?.map(({ path }) => path))).toEqual([
      ["group/ship/file.txt"],
      ["group/ship/file.txt"],
    ]);
  });

  test("is looked at by git when it was marked complete in the tick in which it was made", async () => {
    const { ctimeNs } = lstatSync(markerOf(workspace), { bigint: true });
    const sameTick = checkouts.map((each) => ({
      ...each,
      stamp: { digest: each.stamp?.digest ?? "", newest: String(ctimeNs) },
    }));
    await expect(look(toolsWithoutGit, sameTick)).rejects.toThrow("git was started");
  });

  test("has no stamp where it is large, or another one could be inside of it", () => {
    const [checkout] = checkouts;
    if (!checkout) throw new Error("there is no checkout");
    const { stamp: _, ...plain } = checkout;
    expect(withStamps(workspace, [plain, plain])).toEqual([plain, plain]);
    for (let index = 0; index < 400; index++) writeFileSync(join(tree, `${index}`), "");
    expect(withStamps(workspace, [plain])).toEqual([plain]);
  });
});

describe("a checkout that something has touched", () => {
  const touches: Readonly<Record<string, () => void>> = {
    "a file with as many bytes and the same time": () => {
      const { atime, mtime } = lstatSync(join(tree, "inside/file.txt"));
      writeFileSync(join(tree, "inside/file.txt"), "TWO\n");
      utimesSync(join(tree, "inside/file.txt"), atime, mtime);
    },
    "a mode": () => chmodSync(join(tree, "file.txt"), 0o755),
    "a new file": () => writeFileSync(join(tree, "inside/new.txt"), ""),
    "an ignored file": () => writeFileSync(join(tree, "ignored"), ""),
    "a file that was renamed over another": () => {
      writeFileSync(join(workspace.folder, "other"), "two\n");
      renameSync(join(workspace.folder, "other"), join(tree, "inside/file.txt"));
    },
    "a commit without changes": () => git("commit", "--quiet", "--allow-empty", "--message=empty"),
    "a branch": () => git("checkout", "--quiet", "-b", "other"),
    "a branch in HEAD alone": () => writeFileSync(join(tree, ".git/HEAD"), "ref: refs/heads/else\n"),
    "a folder": () => {
      renameSync(tree, `${tree}-moved`);
      mkdirSync(join(tree, ".git"), { recursive: true });
      writeFileSync(join(tree, "file.txt"), readFileSync(join(`${tree}-moved`, "file.txt")));
    },
  };
  for (const [what, touch] of Object.entries(touches)) {
    test(`is looked at by git: ${what}`, async () => {
      touch();
      const problem = await look(toolsWithoutGit).then(
        ({ repositories }) => repositories?.[0]?.problem,
        (error) => error.message,
      );
      expect(problem).toMatch(/git was started|is not a folder with objects/);
    });
  }

  test("is not found through a link to where it is now", async () => {
    renameSync(join(workspace.tree, "group"), join(workspace.folder, "elsewhere"));
    symlinkSync(join(workspace.folder, "elsewhere"), join(workspace.tree, "group"));
    const { repositories } = await look(toolsWithoutGit);
    expect(repositories?.[0]?.problem).toContain("is a link");
  });
});

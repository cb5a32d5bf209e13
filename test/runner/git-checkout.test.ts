import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  EnvironmentInitializerSchema,
  type GitInitializerSchema,
  GitInitializer_CloneTargetMode as Mode,
} from "#gen/service/v1/environment_pb.js";
import { checkOutSources } from "../../src/runner/git/git-checkout.ts";
import type { GitTools } from "../../src/runner/git/git-tools.ts";
import { type BareRepository, bareRepository, runGit } from "../harness/git-repository.ts";
import { realGit } from "../harness/runner-git.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";

afterAll(stopAll);

let tools: GitTools;
let repository: BareRepository;
let first: string;
let main: string;
let feature: string;
let lost: string;

beforeAll(async () => {
  tools = await realGit();
  repository = bareRepository(temporaryFolder(), { "README.md": "one\n", "sub/file": "x" });
  first = repository.find("main") ?? "";
  main = repository.commit({ "README.md": "two\n" });
  feature = repository.commit({ "feature.txt": "f" }, { branch: "feature/deep", from: "main" });
  repository.setRef("refs/tags/v1", first);
  repository.git("tag", "-a", "-m", "annotated", "v2/rc", main);
  lost = repository.commit({ "lost.txt": "l" }, { branch: "temporary", from: "main" });
  repository.setRef("refs/pull/7/head", lost);
  repository.setRef("refs/merge-requests/8/head", lost);
  repository.git("update-ref", "-d", "refs/heads/temporary");
});

const noCredential = async () => undefined;

function initializer(...specs: (MessageInitShape<typeof GitInitializerSchema> | string)[]) {
  return create(EnvironmentInitializerSchema, {
    specs: specs.map((value) => ({
      spec:
        typeof value === "string"
          ? { case: "contextUrl" as const, value: { url: value } }
          : { case: "git" as const, value },
    })),
  });
}

async function checkedOut(
  tree: string,
  ...specs: (MessageInitShape<typeof GitInitializerSchema> | string)[]
) {
  return checkOutSources(tools, initializer(...specs), { tree, credentialFor: noCredential });
}

/** Checks one source out in a new tree. */
async function fresh(spec: MessageInitShape<typeof GitInitializerSchema>) {
  const tree = temporaryFolder();
  const [checkout] = await checkedOut(tree, { remoteUri: repository.url, ...spec });
  if (!checkout) throw new Error("nothing was checked out");
  const folder = join(tree, checkout.location);
  const branch = readFileSync(join(folder, ".git/HEAD"), "utf8").trim();
  return { tree, checkout, folder, branch, git: (...args: string[]) => runGit(folder, args) };
}

describe("what is checked out", () => {
  test.each([
    ["unspecified", Mode.UNSPECIFIED, "ignored"],
    ["the remote's HEAD", Mode.REMOTE_HEAD, ""],
  ])("%s: the default branch, which follows the remote's", async (_, targetMode, cloneTarget) => {
    const { checkout, folder, branch, git } = await fresh({ targetMode, cloneTarget });
    expect(checkout).toEqual({
      location: "repository",
      remoteUri: repository.url,
      commit: main,
      branch: "main",
      defaultBranch: "main",
      refsDigest: expect.any(String),
    });
    expect(branch).toBe("ref: refs/heads/main");
    expect(readFileSync(join(folder, "README.md"), "utf8")).toBe("two\n");
    expect(git("rev-parse", "--abbrev-ref", "main@{upstream}")).toBe("origin/main");
    expect(git("status", "--porcelain")).toBe("");
    expect(git("remote", "get-url", "origin")).toBe(repository.url);
  });

  test("a branch of the remote, with slashes in its name", async () => {
    const { checkout, branch, git } = await fresh({
      targetMode: Mode.REMOTE_BRANCH,
      cloneTarget: "feature/deep",
    });
    expect(checkout).toMatchObject({ commit: feature, branch: "feature/deep", defaultBranch: "main" });
    expect(branch).toBe("ref: refs/heads/feature/deep");
    expect(git("rev-parse", "--abbrev-ref", "HEAD@{upstream}")).toBe("origin/feature/deep");
  });

  test("a new branch from the default one, which follows none", async () => {
    const { checkout, git } = await fresh({ targetMode: Mode.LOCAL_BRANCH, cloneTarget: "work" });
    expect(checkout).toMatchObject({ commit: main, branch: "work" });
    expect(git("for-each-ref", "--format=%(refname) %(upstream)", "refs/heads")).toBe("refs/heads/work");
  });

  test.each([
    ["v1", () => first],
    ["v2/rc", () => main],
  ])("the tag %s", async (cloneTarget, commit) => {
    const { checkout, branch } = await fresh({ targetMode: Mode.REMOTE_TAG, cloneTarget });
    expect(checkout).toMatchObject({ commit: commit() });
    expect(checkout.branch).toBeUndefined();
    expect(branch).toBe(commit());
  });

  test("a commit, by its hash or by the beginning of it", async () => {
    for (const cloneTarget of [first, first.slice(0, 10), first.toUpperCase()]) {
      const { checkout, branch } = await fresh({ targetMode: Mode.REMOTE_COMMIT, cloneTarget });
      expect([checkout.commit, checkout.branch, branch]).toEqual([first, undefined, first]);
    }
  });

  test("a commit that no branch holds any more, as long as the remote gives it out", async () => {
    repository.git("config", "uploadpack.allowAnySHA1InWant", "true");
    const { folder } = await fresh({ targetMode: Mode.REMOTE_COMMIT, cloneTarget: lost });
    expect(existsSync(join(folder, "lost.txt"))).toBe(true);
  });

  test.each([
    ["a branch", Mode.REMOTE_BRANCH, "absent"],
    ["a branch that is a tag", Mode.REMOTE_BRANCH, "v1"],
    ["a branch's ancestor", Mode.REMOTE_BRANCH, "main~1"],
    ["a tag", Mode.REMOTE_TAG, "absent"],
    ["a tag's ancestor", Mode.REMOTE_TAG, "v2/rc^"],
    ["a commit", Mode.REMOTE_COMMIT, "0123456789".repeat(4)],
    ["a commit by a name", Mode.REMOTE_COMMIT, "main"],
    ["an option", Mode.REMOTE_COMMIT, "--orphan=x"],
    ["nothing as a branch", Mode.REMOTE_BRANCH, ""],
    ["nothing as a tag", Mode.REMOTE_TAG, ""],
  ])("is refused when the remote has it not: %s", async (_, targetMode, cloneTarget) => {
    await expect(fresh({ targetMode, cloneTarget })).rejects.toMatchObject({
      name: "WorkFailure",
      reason: "revision_not_found",
      retriable: false,
    });
  });

  test.each(["", "-b", "--orphan", "HEAD", "a..b", "a b", "a~1", "@{-1}", "x.lock", "a\0b"])(
    "is refused as a new branch of the name %j",
    async (cloneTarget) => {
      await expect(fresh({ targetMode: Mode.LOCAL_BRANCH, cloneTarget })).rejects.toMatchObject({
        reason: "branch_name_invalid",
      });
    },
  );

  test("is an empty folder with a branch to come when the remote has no commit", async () => {
    const empty = bareRepository(temporaryFolder());
    const head = await fresh({ remoteUri: empty.url });
    expect(head.checkout.commit).toBeUndefined();
    expect(head.branch).toBe("ref: refs/heads/main");
    const work = await fresh({ remoteUri: empty.url, targetMode: Mode.LOCAL_BRANCH, cloneTarget: "work" });
    expect(work.checkout).toMatchObject({ branch: "work" });
    expect(work.branch).toBe("ref: refs/heads/work");
  });

  test("has the repository that it was forked from as upstream", async () => {
    const { git } = await fresh({ upstreamRemoteUri: "https://git.example.org/o/r.git" });
    expect(git("remote", "get-url", "upstream")).toBe("https://git.example.org/o/r.git");
    await expect(fresh({ upstreamRemoteUri: "ext::sh -c id" })).rejects.toMatchObject({
      reason: "remote_refused",
    });
  });

  test("has no submodules, no hooks and nothing of a template", async () => {
    const { folder } = await fresh({});
    expect(existsSync(join(folder, ".git/hooks"))).toBe(false);
    const modules = bareRepository(temporaryFolder(), {
      ".gitmodules": `[submodule "m"]\n\tpath = m\n\turl = ${repository.url}\n`,
    });
    runGit(modules.folder, ["read-tree", "main"]);
    runGit(modules.folder, ["update-index", "--add", "--cacheinfo", `160000,${main},m`]);
    const tree = runGit(modules.folder, ["write-tree"]);
    modules.setRef("refs/heads/main", runGit(modules.folder, ["commit-tree", tree, "-m", "m"]));
    const { folder: withModules } = await fresh({ remoteUri: modules.url });
    expect(readdirSync(join(withModules, "m"))).toEqual([]);
  });
});

describe("where it goes", () => {
  test("to a folder named after the repository, with a number for a second one", async () => {
    const tree = temporaryFolder();
    const other = bareRepository(temporaryFolder(), { other: "o" });
    const checkouts = await checkedOut(tree, { remoteUri: repository.url }, { remoteUri: other.url });
    expect(checkouts.map(({ location }) => location)).toEqual(["repository", "repository-2"]);
    expect(existsSync(join(tree, "repository-2/other"))).toBe(true);
  });

  test.each([
    ["deep/below", "deep/below"],
    ["./a//b/", "a/b"],
    [".", ""],
  ])("to the location %j", async (checkoutLocation, location) => {
    const { checkout, tree } = await fresh({ checkoutLocation });
    expect(checkout.location).toBe(location);
    expect(existsSync(join(tree, location, "README.md"))).toBe(true);
  });

  test.each(["../out", "/tmp/out", "a/../../out", ".git/hooks", "link/out", "link"])(
    "never out of the tree: %j",
    async (checkoutLocation) => {
      const tree = temporaryFolder();
      const outside = temporaryFolder();
      symlinkSync(outside, join(tree, "link"));
      await expect(checkedOut(tree, { remoteUri: repository.url, checkoutLocation })).rejects.toMatchObject({
        reason: "path_refused",
      });
      expect([readdirSync(tree), readdirSync(outside)]).toEqual([["link"], []]);
    },
  );

  test("never out of the tree by a link that an earlier source brought", async () => {
    const tree = temporaryFolder();
    const outside = temporaryFolder();
    const linking = bareRepository(temporaryFolder());
    const blob = runGit(linking.folder, ["hash-object", "-w", "--stdin"], { input: outside });
    runGit(linking.folder, ["update-index", "--add", "--cacheinfo", `120000,${blob},link`]);
    const root = runGit(linking.folder, ["write-tree"]);
    linking.setRef("refs/heads/main", runGit(linking.folder, ["commit-tree", root, "-m", "link"]));
    const sources = [
      { remoteUri: linking.url, checkoutLocation: "a" },
      { remoteUri: repository.url, checkoutLocation: "a/link/b" },
    ];
    await expect(checkedOut(tree, ...sources)).rejects.toMatchObject({ reason: "path_refused" });
    expect(lstatSync(join(tree, "a/link")).isSymbolicLink()).toBe(true);
    expect(readdirSync(outside)).toEqual([]);
  });

  test("never where an earlier source went", async () => {
    const source = { remoteUri: repository.url, checkoutLocation: "a" };
    await expect(
      checkedOut(temporaryFolder(), source, { ...source, checkoutLocation: "./a/" }),
    ).rejects.toThrow("two sources have the folder");
  });

  test("nowhere for a blank environment", async () => {
    expect(await checkOutSources(tools, undefined, { tree: "/absent", credentialFor: noCredential })).toEqual(
      [],
    );
  });
});

describe("a repository that is there already", () => {
  test("is brought up to date: files are reset, unknown ones stay", async () => {
    const own = bareRepository(temporaryFolder(), { a: "1", b: "1" });
    const tree = temporaryFolder();
    await checkedOut(tree, { remoteUri: own.url });
    const folder = join(tree, "repository");
    writeFileSync(join(folder, "a"), "changed");
    mkdirSync(join(folder, "built"));
    writeFileSync(join(folder, "built/file"), "kept");
    const next = own.commit({ b: "2" });
    const [checkout] = await checkedOut(tree, { remoteUri: own.url });
    expect(checkout?.commit).toBe(next);
    expect(["a", "b", "built/file"].map((name) => readFileSync(join(folder, name), "utf8"))).toEqual([
      "1",
      "2",
      "kept",
    ]);
    expect(runGit(folder, ["status", "--porcelain"])).toBe("?? built/");
  });

  test("gets none of the settings by which it could run a program or go elsewhere", async () => {
    const tree = temporaryFolder();
    await checkedOut(tree, { remoteUri: repository.url });
    const folder = join(tree, "repository");
    const trap = join(tree, "trapped");
    const traps = {
      "core.fsmonitor": `touch ${trap}; false`,
      "core.sshCommand": `touch ${trap}; false`,
      "core.askPass": `touch ${trap}; false`,
      "core.alternateRefsCommand": `touch ${trap}; false`,
      "filter.f.smudge": `touch ${trap}; cat`,
      "filter.f.process": `touch ${trap}; cat`,
      "remote.origin.uploadpack": `touch ${trap}; git-upload-pack`,
      [`url.${tree}/elsewhere.insteadOf`]: repository.url,
    };
    for (const [name, value] of Object.entries(traps)) runGit(folder, ["config", name, value]);
    mkdirSync(join(folder, ".git/info"), { recursive: true });
    writeFileSync(join(folder, ".git/info/attributes"), "* filter=f\n");
    mkdirSync(join(folder, ".git/hooks"));
    for (const hook of ["post-checkout", "reference-transaction", "post-index-change"]) {
      writeFileSync(join(folder, ".git/hooks", hook), `#!/bin/sh\ntouch ${trap}\n`, { mode: 0o755 });
    }
    const borrowed = bareRepository(temporaryFolder(), { secret: "s" });
    const alternates = join(folder, ".git/objects/info/alternates");
    mkdirSync(dirname(alternates), { recursive: true });
    writeFileSync(alternates, `${borrowed.folder}/objects\n`);
    const targetMode = Mode.REMOTE_BRANCH;
    const [checkout] = await checkedOut(tree, {
      remoteUri: repository.url,
      targetMode,
      cloneTarget: "feature/deep",
    });
    expect(checkout).toMatchObject({ commit: feature, remoteUri: repository.url });
    expect([existsSync(trap), existsSync(alternates)]).toEqual([false, false]);
  });

  test("is made again where its .git leads elsewhere", async () => {
    const tree = temporaryFolder();
    const elsewhere = temporaryFolder();
    mkdirSync(join(tree, "repository"));
    symlinkSync(elsewhere, join(tree, "repository/.git"));
    await checkedOut(tree, { remoteUri: repository.url });
    expect(lstatSync(join(tree, "repository/.git")).isDirectory()).toBe(true);
    expect(readdirSync(elsewhere)).toEqual([]);
  });
});

describe("a checkout that is ended", () => {
  test("fails with the reason of the caller that ended it", async () => {
    const signal = AbortSignal.abort(new Error("the lease is lost"));
    const place = { tree: temporaryFolder(), credentialFor: noCredential, signal };
    await expect(checkOutSources(tools, initializer({ remoteUri: repository.url }), place)).rejects.toThrow(
      "the lease is lost",
    );
  });
});

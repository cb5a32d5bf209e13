import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { EnvironmentInitializerSchema } from "#gen/service/v1/environment_pb.js";
import { HostAuthenticationTokenSource as Source } from "#gen/service/v1/runner_configuration_pb.js";
import { type Checkout, checkOutSources } from "../../src/runner/git/git-checkout.ts";
import type { GitTools } from "../../src/runner/git/git-tools.ts";
import type { RunCommand } from "../../src/runner/process/command.ts";
import { type PushReport, pushFromTree, type TreePush } from "../../src/runner/push/tree-push.ts";
import { serveGit } from "../harness/git-http-server.ts";
import { type BareRepository, bareRepository, runGit } from "../harness/git-repository.ts";
import { realGit } from "../harness/runner-git.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";

afterAll(stopAll);

const TOKEN = "token-of-the-caller";
const ENVIRONMENT = "0190c0de-0000-7000-8000-000000000001";

let tools: GitTools;
beforeAll(async () => {
  tools = await realGit();
});

let remote: BareRepository;
let workspace: { tree: string };
let checkout: Checkout;
let folder: string;
beforeEach(() => clone());
afterEach(() => {
  // Whatever happened, nothing is left of a push.
  expect(readdirSync(tools.scratch)).toEqual([]);
});

async function clone(uri?: string, depth = 0): Promise<void> {
  if (uri === undefined) remote = bareRepository(temporaryFolder(), { "a.txt": "one\n" }, "ship.git");
  workspace = { tree: temporaryFolder() };
  const git = { remoteUri: uri ?? remote.url, cloneDepth: depth };
  const initializer = create(EnvironmentInitializerSchema, {
    specs: [{ spec: { case: "git", value: git } }],
  });
  const { tree } = workspace;
  const [made] = await checkOutSources(tools, initializer, { tree, credentialFor: async () => undefined });
  if (!made) throw new Error("nothing was checked out");
  checkout = made;
  folder = join(tree, made.location);
}

function write(path: string, text: string, mode = 0o644): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text, { mode });
}
const inTree = (...args: string[]) => runGit(folder, args);
function commit(path = "b.txt", text = "two\n"): string {
  write(path, text);
  inTree("add", "--all");
  inTree("commit", "--quiet", "--message=Add it");
  return inTree("rev-parse", "HEAD");
}

const run = (more: Partial<TreePush> = {}, git = tools): Promise<PushReport> =>
  pushFromTree(git, workspace, checkout, {
    environmentId: ENVIRONMENT,
    branch: "topic",
    commitMessage: "",
    author: { name: "Grace", email: "grace@example.org" },
    credentialFor: async () => undefined,
    ...more,
  });
/** Looks, and carries out what the look has found. */
async function push(more: Partial<TreePush> = {}, allowed: Partial<TreePush["decided"]> = {}) {
  const { commit, tip } = await run(more);
  return run({ ...more, decided: { commit, tip, mayBeDefault: false, mayForce: false, ...allowed } });
}

describe("a push from a tree", () => {
  test("is looked at first, and creates the branch; a repetition finds it", async () => {
    const made = commit();
    const refs = remote.git("for-each-ref");
    expect(await run()).toEqual({
      remote: remote.url,
      commit: made,
      tip: "",
      defaultBranch: "main",
      baseBranch: "main",
      isForced: false,
    });
    expect(remote.git("for-each-ref")).toBe(refs);
    expect(await push()).toMatchObject({ commit: made, outcome: "created" });
    expect(remote.find("topic")).toBe(made);
    expect(await push()).toMatchObject({ commit: made, tip: made, outcome: "unchanged" });
  });

  test("fast-forwards the branch, also one that is behind what was checked out", async () => {
    remote.git("branch", "topic", "main");
    remote.commit({ "m.txt": "m\n" });
    await clone(remote.url);
    const made = commit();
    expect(await push()).toMatchObject({ isForced: false, outcome: "advanced" });
    expect(remote.find("topic")).toBe(made);
    const next = commit("c.txt");
    expect(await push()).toMatchObject({ tip: made, outcome: "advanced" });
    expect(remote.find("topic")).toBe(next);
  });

  test("knows a fast-forward where the history is cut, too", async () => {
    remote.git("branch", "topic", "main");
    for (const name of ["m", "n", "o"]) remote.commit({ [name]: name });
    await clone(remote.url, 1);
    const made = commit();
    expect(await push()).toMatchObject({ isForced: false, outcome: "advanced" });
    expect(remote.find("topic")).toBe(made);
    expect(remote.list("topic")).toEqual(["a.txt", "b.txt", "m", "n", "o"]);
  });

  test("removes commits of the branch only where that is allowed", async () => {
    const theirs = remote.commit({ "theirs.txt": "x" }, { branch: "topic", from: "main" });
    const made = commit();
    expect(await run()).toMatchObject({ tip: theirs, isForced: true });
    await expect(push()).rejects.toMatchObject({ reason: "branch_taken" });
    expect(remote.find("topic")).toBe(theirs);
    expect(await push({}, { mayForce: true })).toMatchObject({ outcome: "replaced" });
    expect(remote.find("topic")).toBe(made);
  });

  test("goes to the default branch only where that is allowed", async () => {
    const made = commit();
    await expect(push({ branch: "main" })).rejects.toMatchObject({ reason: "branch_is_default" });
    expect(await push({ branch: "main" }, { mayBeDefault: true })).toMatchObject({ outcome: "advanced" });
    expect(remote.find("main")).toBe(made);
  });

  test("of another commit than the one that was decided on is refused, and so is one to a branch that moved", async () => {
    const first = commit();
    const decided = { commit: first, tip: "", mayBeDefault: false, mayForce: true };
    commit("c.txt");
    await expect(run({ decided })).rejects.toMatchObject({ reason: "branch_moved" });
    inTree("reset", "--quiet", "--hard", first);
    remote.commit({ "d.txt": "d" }, { branch: "topic", from: "main" });
    await expect(run({ decided })).rejects.toMatchObject({ reason: "branch_moved", retriable: true });
    expect(remote.list("topic")).toEqual(["a.txt", "d.txt"]);
  });

  test.each([
    ["of a tree without a change", async () => undefined, {}, "nothing_to_push"],
    ["to no name of a branch", async () => void commit(), { branch: "a..b" }, "branch_name_invalid"],
    ["of uncommitted changes", async () => write("b.txt", "b"), {}, "uncommitted_changes"],
    [
      "of a change that the index hides",
      async () => {
        write("a.txt", "changed");
        inTree("update-index", "--assume-unchanged", "a.txt");
      },
      {},
      "uncommitted_changes",
    ],
  ])("%s is refused", async (_, change, more, reason) => {
    await change();
    await expect(push(more)).rejects.toMatchObject({ reason });
    expect(remote.git("for-each-ref", "--format=%(refname)")).toBe("refs/heads/main");
  });

  test("by ssh is refused: the key is the runner's", async () => {
    commit();
    const other = { ...checkout, remoteUri: "ssh://git@127.0.0.1/team/ship.git" };
    const wanted = {
      environmentId: ENVIRONMENT,
      branch: "topic",
      commitMessage: "",
      author: { name: "Grace", email: "grace@example.org" },
      credentialFor: async () => undefined,
    };
    await expect(pushFromTree(tools, workspace, other, wanted)).rejects.toMatchObject({
      reason: "credential_not_own",
    });
  });
});

describe("a look at the files that takes long", () => {
  /** The tools, with a git that looks at the files as `look` says. */
  const looking = (look: RunCommand): GitTools => {
    const { programs } = tools;
    const run: RunCommand = (command) =>
      command.args.includes("status") ? look(command) : programs.run(command);
    return { ...tools, programs: { ...programs, run } };
  };

  test("says again and again that it goes on", async () => {
    const made = commit();
    const said = Promise.withResolvers<void>();
    const words = new Set<string>();
    const held = looking(async (command) => {
      await said.promise;
      return tools.programs.run(command);
    });
    const report = await run(
      {
        progressIntervalMs: 1,
        onProgress(stage, line) {
          if (stage === "looking" && line.startsWith("for ")) words.add(line);
          if (words.size === 3) said.resolve();
        },
      },
      held,
    );
    expect(report.commit).toBe(made);
  });

  test("ends with what to do about it", async () => {
    commit();
    const endless = looking(async (command) => ({ ...(await tools.programs.run(command)), timedOut: true }));
    await expect(run({}, endless)).rejects.toMatchObject({
      reason: "tree_too_large",
      message: expect.stringMatching(/git status took longer than 900000 ms; .*\.gitignore/),
    });
  });
});

describe("uncommitted changes", () => {
  const commitMessage = "Add b\n\nIt was missing.";

  test("are committed in the name of the caller, and the tree stays as it is", async () => {
    write("b.txt", "two\n");
    rmSync(join(folder, "a.txt"));
    const status = inTree("status", "--porcelain");
    const first = await run({ commitMessage });
    expect((await run({ commitMessage })).commit).toBe(first.commit);
    expect(await push({ commitMessage })).toMatchObject({ commit: first.commit, outcome: "created" });
    expect(remote.git("log", "-1", "--format=%an %ae %cn", "topic")).toBe("Grace grace@example.org Grace");
    expect(remote.messages("topic")[0]).toBe(`${commitMessage}\n\nChartroom-Environment: ${ENVIRONMENT}`);
    expect(remote.list("topic")).toEqual(["b.txt"]);
    expect(inTree("status", "--porcelain")).toBe(status);
    expect(inTree("rev-parse", "HEAD")).toBe(checkout.commit);
    expect(await push({ commitMessage: "Other words" })).toMatchObject({ outcome: "unchanged" });
  });

  test("that are pushed again go on from what was pushed before", async () => {
    write("b.txt", "two\n");
    const first = await push({ commitMessage });
    write("c.txt", "three\n");
    const second = await push({ commitMessage: "Add c" });
    expect(second).toMatchObject({ tip: first.commit, isForced: false, outcome: "advanced" });
    write("b.txt", "2\n");
    await push({ commitMessage: "Change b" });
    expect(remote.messages("topic").map((text) => text.split("\n")[0])).toEqual([
      "Change b",
      "Add c",
      "Add b",
      "first",
    ]);
  });

  test("never undo what somebody else has pushed since", async () => {
    write("b.txt", "two\n");
    await push({ commitMessage });
    remote.commit({ "theirs.txt": "x" }, { branch: "topic" });
    write("c.txt", "three\n");
    expect(await run({ commitMessage })).toMatchObject({ isForced: true });
    await expect(push({ commitMessage })).rejects.toMatchObject({ reason: "branch_taken" });
  });

  test("have names with line breaks and bytes of their own", async () => {
    write("line\nbreak \u001b[31m.txt", "x");
    writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff, 0xfe])]), "y");
    await push({ commitMessage });
    expect(remote.git("ls-tree", "-z", "--name-only", "topic").split("\0")).toHaveLength(4);
  });
});

describe("over HTTP", () => {
  test("the credential goes to the remote alone, whatever the tree says, and is in no argument", async () => {
    const served = bareRepository(temporaryFolder(), { "a.txt": "one\n" }, "ship.git");
    const trap = await serveGit(temporaryFolder());
    const server = await serveGit(dirname(served.folder), {
      credential: { user: "oauth2", password: TOKEN },
    });
    const credential = { token: TOKEN, source: Source.PAT };
    const credentialFor = async () => credential;
    const seen: string[] = [];
    const watching: GitTools = {
      ...tools,
      programs: {
        ...tools.programs,
        run: (options) => {
          seen.push(JSON.stringify(options.args));
          return tools.programs.run(options);
        },
      },
    };
    workspace = { tree: temporaryFolder() };
    const initializer = create(EnvironmentInitializerSchema, {
      specs: [{ spec: { case: "git", value: { remoteUri: `${server.url}/ship.git` } } }],
    });
    const [made] = await checkOutSources(tools, initializer, { tree: workspace.tree, credentialFor });
    checkout = made ?? checkout;
    folder = join(workspace.tree, checkout.location);
    const pushed = commit();
    for (const [name, value] of [
      ["remote.origin.url", `${trap.url}/x.git`],
      ["remote.origin.pushurl", `${trap.url}/x.git`],
      [`url.${trap.url}/.insteadOf`, `${server.url}/`],
      [`url.${trap.url}/.pushInsteadOf`, `${server.url}/`],
      ["http.proxy", trap.url],
      ["http.extraHeader", "X-Trap: 1"],
      ["credential.helper", `!cat > ${folder}/stolen`],
      ["core.askPass", "/bin/false"],
    ] as const)
      inTree("config", name, value);
    const want = {
      environmentId: ENVIRONMENT,
      branch: "topic",
      commitMessage: "",
      author: { name: "Grace", email: "grace@example.org" },
      credentialFor,
    };
    const { commit: head, tip } = await pushFromTree(watching, workspace, checkout, want);
    const decided = { commit: head, tip, mayBeDefault: false, mayForce: false };
    await pushFromTree(watching, workspace, checkout, { ...want, decided });
    expect(served.find("topic")).toBe(pushed);
    expect(trap.requests).toEqual([]);
    expect(existsSync(join(folder, "stolen"))).toBe(false);
    expect(seen.filter((args) => args.includes(TOKEN))).toEqual([]);
    expect(readFileSync(join(folder, ".git/config"), "utf8")).not.toContain(TOKEN);
    await Promise.all([server.close(), trap.close()]);
  });

  test("a wrong credential is reported without its value", async () => {
    const served = bareRepository(temporaryFolder(), { "a.txt": "one\n" }, "ship.git");
    const server = await serveGit(dirname(served.folder), { credential: { user: "oauth2", password: "x" } });
    commit();
    checkout = { ...checkout, remoteUri: `${server.url}/ship.git` };
    const credentialFor = async () => ({ token: TOKEN, source: Source.PAT });
    const error = await run({ credentialFor }).catch((each) => each);
    expect(error).toMatchObject({ reason: "git_unauthorized" });
    expect(error.message).not.toContain(TOKEN);
    await server.close();
  });
});

describe("a tree that cheats", () => {
  let marker: string;
  let trap: string;
  beforeEach(() => {
    const outside = temporaryFolder();
    marker = join(outside, "marker");
    trap = join(outside, "trap");
    writeFileSync(trap, `#!/bin/sh\ntouch ${marker}\nexit 1\n`, { mode: 0o755 });
  });

  test("starts nothing by hooks, filters, drivers, includes or settings", async () => {
    write(".gitattributes", "* filter=trap diff=trap merge=trap\n");
    const made = commit();
    for (const hook of ["pre-push", "post-index-change", "reference-transaction", "pre-commit"]) {
      write(`.git/hooks/${hook}`, `#!/bin/sh\ntouch ${marker}\n`, 0o755);
    }
    const included = join(dirname(trap), "included");
    writeFileSync(included, `[core]\n\tfsmonitor = ${trap}\n\tsshCommand = ${trap}\n`);
    for (const [name, value] of [
      ["include.path", included],
      ["core.fsmonitor", trap],
      ["core.hooksPath", join(folder, ".git/hooks")],
      ["filter.trap.clean", trap],
      ["filter.trap.process", trap],
      ["diff.trap.command", trap],
      ["uploadpack.packObjectsHook", trap],
      ["core.alternateRefsCommand", trap],
      ["core.gitProxy", trap],
      ["gpg.program", trap],
      ["commit.gpgSign", "true"],
      ["push.gpgSign", "true"],
    ] as const)
      inTree("config", name, value);
    write("uncommitted.txt", "x");
    await push({ commitMessage: "With the rest" });
    expect(remote.git("rev-parse", "topic^")).toBe(made);
    expect(existsSync(marker)).toBe(false);
  });

  test.each<[string, () => void, string]>([
    [
      "names objects elsewhere",
      () => write(".git/objects/info/alternates", `${remote.folder}/objects\n`),
      "repository_replaced",
    ],
    [
      "has a file instead of .git",
      () => {
        renameSync(join(folder, ".git"), join(workspace.tree, "elsewhere"));
        write(".git", `gitdir: ${join(workspace.tree, "elsewhere")}\n`);
      },
      "repository_replaced",
    ],
    [
      "has a link instead of .git",
      () => {
        renameSync(join(folder, ".git"), join(workspace.tree, "elsewhere"));
        symlinkSync(join(workspace.tree, "elsewhere"), join(folder, ".git"));
      },
      "repository_replaced",
    ],
    [
      "is a link to another repository in the workspace",
      () => {
        renameSync(folder, join(workspace.tree, "elsewhere"));
        symlinkSync(join(workspace.tree, "elsewhere"), folder);
      },
      "repository_replaced",
    ],
    [
      "is a link out of the workspace",
      () => {
        const other = temporaryFolder();
        renameSync(folder, join(other, "elsewhere"));
        symlinkSync(join(other, "elsewhere"), folder);
      },
      "path_refused",
    ],
    ["has a common folder elsewhere", () => write(".git/commondir", "/tmp\n"), "repository_replaced"],
    [
      "lacks an object",
      () => {
        const blob = inTree("rev-parse", "HEAD:b.txt");
        rmSync(join(folder, ".git/objects", blob.slice(0, 2), blob.slice(2)), { force: true });
      },
      "repository_unsound",
    ],
    [
      "has another object under the name of one",
      () => {
        const [blob, other] = ["HEAD:b.txt", "HEAD:a.txt"].map((name) => inTree("rev-parse", name));
        const file = (id = "") => join(folder, ".git/objects", id.slice(0, 2), id.slice(2));
        const loose = runGit(folder, ["hash-object", "-w", "--stdin"], { input: "something else" });
        rmSync(file(blob), { force: true });
        renameSync(file(loose), file(blob));
        expect(other).not.toBe(blob);
      },
      "repository_unsound",
    ],
  ])("leads nowhere when it %s", async (_, cheat, reason) => {
    commit();
    cheat();
    await expect(push()).rejects.toMatchObject({ reason });
    expect(remote.git("for-each-ref", "--format=%(refname)")).toBe("refs/heads/main");
  });

  test("pushes what its commit is, not what replaces it or is grafted below it", async () => {
    const made = commit();
    const other = remote.commit({ "other.txt": "x" });
    inTree("fetch", "--quiet", "origin");
    inTree("update-ref", `refs/replace/${made}`, other);
    write(".git/info/grafts", `${made} ${other}\n`);
    await push();
    expect(remote.find("topic")).toBe(made);
    expect(remote.list("topic")).toEqual(["a.txt", "b.txt"]);
  });

  test.each([".git/config", "../up", ".GIT/x"])("may not push the path %j", async (path) => {
    const blob = runGit(folder, ["hash-object", "-w", "--stdin"], { input: "[core]\n" });
    const [first = "", second = ""] = path.split("/");
    const inner = runGit(folder, ["mktree"], { input: `100644 blob ${blob}\t${second}\n` });
    const tree = runGit(folder, ["mktree"], { input: `040000 tree ${inner}\t${first}\n` });
    const made = inTree("commit-tree", tree, "-p", "HEAD", "-m", "trap");
    inTree("update-ref", "HEAD", made);
    inTree("read-tree", "--empty");
    // What is checked out does not matter: only the commit does.
    await expect(push({ commitMessage: "x" })).rejects.toMatchObject({
      reason: expect.stringMatching(/repository_unsound|git_failed/),
    });
    expect(remote.find("topic")).toBeUndefined();
  });

  test("makes its history look short, and no push goes past the branch by that", async () => {
    const theirs = remote.commit({ "theirs.txt": "x" }, { branch: "topic", from: "main" });
    const made = commit();
    write(".git/shallow", `${made}\n`);
    await expect(push()).rejects.toMatchObject({ reason: expect.any(String) });
    expect(remote.find("topic")).toBe(theirs);
  });
});

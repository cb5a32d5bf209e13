import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { EnvironmentInitializerSchema } from "#gen/service/v1/environment_pb.js";
import { switchToBranch } from "../../src/runner/git/git-branch.ts";
import { checkOutSources } from "../../src/runner/git/git-checkout.ts";
import { commitAll, hasChanges } from "../../src/runner/git/git-commit.ts";
import { pushBranch } from "../../src/runner/git/git-push.ts";
import { withSnapshot } from "../../src/runner/git/git-snapshot.ts";
import type { GitTools } from "../../src/runner/git/git-tools.ts";
import { type BareRepository, bareRepository, runGit } from "../harness/git-repository.ts";
import { realGit } from "../harness/runner-git.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";

afterAll(stopAll);

let tools: GitTools;
beforeAll(async () => {
  tools = await realGit();
});

const credentialFor = async () => undefined;
const author = { name: "Grace", email: "grace@example.org" };
const trailers = { workflowId: "w", executionId: "e", actionId: "a" };
const ATTRIBUTES = "* filter=trap diff=trap merge=trap\n";

/** A repository that a step has in its hands, and a program that must not run. */
class Stage {
  readonly remote: BareRepository;
  readonly folder: string;
  readonly commit: string;
  /** Written by the program. */
  readonly marker: string;
  /** The program. It fails at once, so that nothing waits for it. */
  readonly trap: string;

  static async begin(): Promise<Stage> {
    const remote = bareRepository(temporaryFolder(), { "a.txt": "one\n" });
    const tree = temporaryFolder();
    const initializer = create(EnvironmentInitializerSchema, {
      specs: [{ spec: { case: "git", value: { remoteUri: remote.url } } }],
    });
    const [checkout] = await checkOutSources(tools, initializer, { tree, credentialFor });
    return new Stage(remote, join(tree, checkout?.location ?? ""), checkout?.commit ?? "");
  }

  private constructor(remote: BareRepository, folder: string, commit: string) {
    this.remote = remote;
    this.folder = folder;
    this.commit = commit;
    const outside = temporaryFolder();
    this.marker = join(outside, "marker");
    this.trap = join(outside, "trap");
    writeFileSync(this.trap, `#!/bin/sh\ntouch ${this.marker}\nexit 1\n`, { mode: 0o755 });
  }

  write(path: string, text: string, mode = 0o644): this {
    mkdirSync(dirname(join(this.folder, path)), { recursive: true });
    writeFileSync(join(this.folder, path), text, { mode });
    return this;
  }

  set(name: string, value: string): this {
    this.git("config", name, value);
    return this;
  }

  git(...args: string[]): string {
    return runGit(this.folder, args);
  }

  /** What a plain git runs here; its own failure does not matter. */
  spring(...args: string[]): void {
    try {
      runGit(this.folder, args, { env: { GIT_TERMINAL_PROMPT: "0" } });
    } catch {}
  }

  /** All that a pull-request step has the runner's git do. @returns the commit that was pushed */
  propose(): Promise<string> {
    return withSnapshot(tools, this.folder, async ({ repository, writeBack: handBack }) => {
      const call = { repository };
      expect(await hasChanges(tools, call, this.commit)).toBe(true);
      await switchToBranch(tools, call, "topic");
      const commit = await commitAll(tools, call, { message: "Change it", author, trailers });
      await handBack();
      const push = {
        repository,
        remoteUri: this.remote.url,
        commit,
        branch: "topic",
        trailers,
        credentialFor,
      };
      expect(await pushBranch(tools, push)).toBe("created");
      return commit;
    });
  }
}

interface Plant {
  readonly name: string;
  readonly plant: (stage: Stage) => void;
  /** A plain git command that runs the program: without it the test would show nothing. */
  readonly springs: readonly string[];
}

const hook = (stage: Stage, folder: string, name: string) =>
  stage.write(`${folder}/${name}`, readFileSync(stage.trap, "utf8"), 0o755);
const filtered = (stage: Stage) => stage.write(".gitattributes", ATTRIBUTES);
const filterIn = (stage: Stage, file: string) =>
  stage.write(file, `[filter "trap"]\n\tclean = ${stage.trap}\n`);

const PLANTS: readonly Plant[] = [
  {
    name: "a filter's clean",
    plant: (stage) => filtered(stage).set("filter.trap.clean", stage.trap),
    springs: ["add", "--all", "--dry-run", "."],
  },
  {
    name: "a filter's process that is required",
    plant: (stage) =>
      filtered(stage).set("filter.trap.process", stage.trap).set("filter.trap.required", "true"),
    springs: ["add", "--all"],
  },
  {
    name: "a filter of info/attributes",
    plant: (stage) => stage.write(".git/info/attributes", ATTRIBUTES).set("filter.trap.clean", stage.trap),
    springs: ["add", "--all"],
  },
  {
    name: "a filter of core.attributesFile",
    plant: (stage) =>
      stage
        .write(".git/attributes", ATTRIBUTES)
        .set("core.attributesFile", join(stage.folder, ".git/attributes"))
        .set("filter.trap.clean", stage.trap),
    springs: ["add", "--all"],
  },
  {
    name: "a filter behind a macro of the attributes",
    plant: (stage) =>
      stage.write(".gitattributes", "[attr]text filter=trap\n* text\n").set("filter.trap.clean", stage.trap),
    springs: ["add", "--all"],
  },
  {
    name: "a filter of an included file",
    plant: (stage) => filterIn(filtered(stage), ".git/more").set("include.path", "more"),
    springs: ["add", "--all"],
  },
  {
    name: "a filter of a file that is included here only",
    plant: (stage) => filterIn(filtered(stage), ".git/more").set("includeIf.gitdir:**.path", "more"),
    springs: ["add", "--all"],
  },
  {
    name: "a filter of the working tree's own settings",
    plant: (stage) =>
      filterIn(filtered(stage), ".git/config.worktree").set("extensions.worktreeConfig", "true"),
    springs: ["add", "--all"],
  },
  {
    name: "the filter of large files",
    plant: (stage) => stage.write(".gitattributes", "* filter=lfs\n").set("filter.lfs.clean", stage.trap),
    springs: ["add", "--all"],
  },
  {
    name: "a diff program",
    plant: (stage) => stage.set("diff.external", stage.trap).write("a.txt", "two\n"),
    springs: ["diff"],
  },
  {
    name: "a diff driver and its textconv",
    plant: (stage) =>
      filtered(stage).set("diff.trap.command", stage.trap).set("diff.trap.textconv", stage.trap),
    springs: ["diff"],
  },
  {
    name: "a file monitor",
    plant: (stage) => stage.set("core.fsmonitor", stage.trap),
    springs: ["status"],
  },
  {
    name: "hooks",
    plant: (stage) => {
      for (const name of ["pre-commit", "commit-msg", "post-commit", "post-index-change"])
        hook(stage, ".git/hooks", name);
      for (const name of ["reference-transaction", "post-checkout", "pre-auto-gc", "pre-push"])
        hook(stage, ".git/hooks", name);
    },
    springs: ["update-ref", "refs/heads/x", "HEAD"],
  },
  {
    name: "hooks of core.hooksPath",
    plant: (stage) =>
      hook(stage, ".git/own", "reference-transaction").set("core.hooksPath", join(stage.folder, ".git/own")),
    springs: ["update-ref", "refs/heads/x", "HEAD"],
  },
  {
    name: "a pager and editors",
    plant: (stage) =>
      stage
        .set("core.pager", stage.trap)
        .set("pager.log", stage.trap)
        .set("core.editor", stage.trap)
        .set("sequence.editor", stage.trap),
    springs: ["commit", "--allow-empty"],
  },
  {
    name: "a program that signs",
    plant: (stage) =>
      stage
        .set("commit.gpgSign", "true")
        .set("push.gpgSign", "true")
        .set("log.showSignature", "true")
        .set("gpg.program", stage.trap),
    springs: ["commit", "--allow-empty", "-m", "x"],
  },
  {
    name: "a trailer's command",
    plant: (stage) =>
      stage
        .set("trailer.sign.key", "Chartroom-Action")
        .set("trailer.sign.ifmissing", "add")
        .set("trailer.sign.command", stage.trap),
    springs: ["interpret-trailers", "a.txt"],
  },
  {
    name: "credential helpers, and the ways to a remote",
    plant: (stage) =>
      stage
        .set("credential.helper", `!${stage.trap}`)
        .set("core.sshCommand", stage.trap)
        .set("core.askPass", stage.trap)
        .set("core.gitProxy", stage.trap)
        .set("core.alternateRefsCommand", stage.trap)
        .set("uploadpack.packObjectsHook", stage.trap)
        .set("remote.origin.uploadpack", stage.trap)
        .set("remote.origin.receivepack", stage.trap)
        .set("remote.origin.proxy", "http://127.0.0.1:1"),
    springs: ["fetch", "origin"],
  },
  {
    name: "another address for the remote, by a helper",
    plant: (stage) =>
      stage
        .set("protocol.ext.allow", "always")
        .set(`url.ext::${stage.trap} .insteadOf`, "file://")
        .set("remote.origin.vcs", "ext"),
    springs: ["ls-remote", "file:///x"],
  },
  {
    name: "an alias",
    plant: (stage) => stage.set("alias.ls", `!${stage.trap}`).set("alias.commit", `!${stage.trap}`),
    springs: ["ls"],
  },
  {
    name: "a filter of a submodule, and its update",
    plant: (stage) => {
      const inner = join(stage.folder, "inner");
      stage.write("inner/file", "x\n");
      runGit(inner, ["init", "-q"]);
      runGit(inner, ["add", "."]);
      runGit(inner, ["commit", "-qm", "inner"]);
      stage.git("add", "inner");
      stage.write(".gitmodules", '[submodule "inner"]\n\tpath = inner\n\turl = ./inner\n');
      stage.set("submodule.recurse", "true").set("submodule.inner.update", `!${stage.trap}`);
      stage.set("submodule.inner.ignore", "none").set("diff.ignoreSubmodules", "none");
      filterIn(stage.write("inner/.gitattributes", ATTRIBUTES), ".git/inner");
      runGit(inner, ["config", "filter.trap.clean", stage.trap]);
      runGit(inner, ["config", "core.fsmonitor", stage.trap]);
      // Of the same size: only its content tells that it has changed.
      stage.write("inner/file", "y\n");
    },
    springs: ["status"],
  },
];

describe("a program that a step names in its repository", () => {
  test.each(PLANTS)("does not run when the runner commits and pushes: $name", async ({ plant, springs }) => {
    const shown = await Stage.begin();
    plant(shown);
    shown
      .write("new.txt", "n\n")
      .write("a.txt", "two\n")
      .spring(...springs);
    expect(existsSync(shown.marker)).toBe(true);

    const stage = await Stage.begin();
    plant(stage);
    rmSync(stage.marker, { force: true });
    stage.write("new.txt", "n\n").write("a.txt", "two\n");
    const commit = await stage.propose();
    expect(existsSync(stage.marker)).toBe(false);
    expect(stage.remote.find("topic")).toBe(commit);
    expect([stage.remote.read(commit, "new.txt"), stage.remote.read(commit, "a.txt")]).toEqual(["n", "two"]);
  });

  test("does not run when a branch is merged: a merge driver", async () => {
    const stage = await Stage.begin();
    filtered(stage).set("merge.trap.driver", stage.trap);
    stage.write("a.txt", "two\n").git("commit", "-qam", "two");
    stage.git("checkout", "-q", "-b", "other", "HEAD~");
    stage.write("a.txt", "three\n").git("commit", "-qam", "three");
    await stage.propose();
    expect(existsSync(stage.marker)).toBe(false);
    stage.spring("merge", "main");
    expect(existsSync(stage.marker)).toBe(true);
  });
});

describe("a repository that a step has changed", () => {
  test("is that of the step's folder, whatever core.worktree says", async () => {
    const stage = await Stage.begin();
    stage.write("new.txt", "n\n").set("core.worktree", temporaryFolder()).set("core.bare", "true");
    const commit = await stage.propose();
    expect(stage.remote.list(commit)).toEqual(["a.txt", "new.txt"]);
  });

  test("keeps text as its attributes say, and the placeholder of a large file as it is", async () => {
    const stage = await Stage.begin();
    stage.write(".gitattributes", "*.txt text eol=lf\n*.bin filter=lfs -text\n");
    const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${"0".repeat(64)}\nsize 1\n`;
    stage.write("new.txt", "one\r\ntwo\r\n").write("large.bin", pointer);
    const commit = await stage.propose();
    expect(stage.remote.read(commit, "new.txt")).toBe("one\ntwo");
    expect(stage.remote.read(commit, "large.bin")).toBe(pointer.trimEnd());
  });

  test("keeps the step's own commits, what it ignores by itself, and what it added although ignored", async () => {
    const stage = await Stage.begin();
    stage.write(".gitignore", "*.log\n").write(".git/info/exclude", "*.tmp\n");
    stage.write("own.txt", "o\n").write("kept.log", "k\n");
    stage.git("add", "--force", ".gitignore", "own.txt");
    stage.git("commit", "-qm", "Own commit");
    stage.git("add", "--force", "kept.log");
    stage.write("other.log", "x\n").write("other.tmp", "x\n").write("new.txt", "n\n");
    const commit = await stage.propose();
    expect(stage.remote.list(commit)).toEqual([".gitignore", "a.txt", "kept.log", "new.txt", "own.txt"]);
    expect(stage.remote.messages("topic").map((text) => text.split("\n")[0])).toEqual([
      "Change it",
      "Own commit",
      "first",
    ]);
  });

  test("is as after a commit of its own: on the branch, with nothing left to commit", async () => {
    const stage = await Stage.begin();
    rmSync(join(stage.folder, "a.txt"));
    const odd = Buffer.concat([Buffer.from(`${stage.folder}/odd-`), Buffer.from([0xff])]);
    writeFileSync(odd, "o\n");
    const commit = await stage.write("a.txt/inside", "i\n").propose();
    expect(stage.remote.list(commit)).toEqual(["a.txt/inside", '"odd-\\377"']);
    expect(stage.git("rev-parse", "HEAD", "topic")).toBe(`${commit}\n${commit}`);
    expect(stage.git("symbolic-ref", "HEAD")).toBe("refs/heads/topic");
    expect(stage.git("status", "--porcelain")).toBe("");
    expect(stage.git("fsck", "--full")).toBe("");
  });

  test("goes on with the merge that was under way", async () => {
    const stage = await Stage.begin();
    stage.git("checkout", "-q", "-b", "other");
    stage.write("a.txt", "two\n").git("commit", "-qam", "two");
    stage.git("checkout", "-q", "main");
    stage.write("a.txt", "three\n").git("commit", "-qam", "three");
    stage.spring("merge", "other");
    const other = stage.git("rev-parse", "other");
    const commit = await stage.write("a.txt", "both\n").propose();
    expect(stage.remote.git("rev-parse", `${commit}^2`)).toBe(other);
    expect(existsSync(join(stage.folder, ".git/MERGE_HEAD"))).toBe(false);
  });

  test("does not borrow objects from elsewhere", async () => {
    const stage = await Stage.begin();
    const elsewhere = bareRepository(temporaryFolder(), { secret: "s" });
    stage.write(".git/objects/info/alternates", `${elsewhere.folder}/objects\n`).write("new.txt", "n\n");
    await expect(stage.propose()).rejects.toMatchObject({
      reason: "repository_replaced",
      message: expect.stringContaining("objects/info/alternates"),
    });
  });

  test.each<[string, (stage: Stage, elsewhere: string) => void]>([
    ["a file", (stage, elsewhere) => stage.write(".git", `gitdir: ${elsewhere}\n`)],
    ["a link", (stage, elsewhere) => symlinkSync(elsewhere, join(stage.folder, ".git"))],
    ["nothing", () => undefined],
    [
      "nothing, in a folder that is a repository by itself",
      (stage, elsewhere) => {
        for (const name of ["HEAD", "config", "objects", "refs"]) {
          renameSync(join(elsewhere, name), join(stage.folder, name));
        }
      },
    ],
    [
      "one with a link in the place of a branch's folder",
      (stage, elsewhere) => {
        renameSync(elsewhere, join(stage.folder, ".git"));
        const heads = join(stage.folder, ".git/refs/heads");
        renameSync(heads, elsewhere);
        symlinkSync(elsewhere, heads);
      },
    ],
    [
      "one with objects that are links",
      (stage, elsewhere) => {
        renameSync(elsewhere, join(stage.folder, ".git"));
        symlinkSync("/etc/hostname", join(stage.folder, ".git/objects/pack/pack-1.pack"));
      },
    ],
  ])("is refused where its .git was replaced by %s", async (_, replace) => {
    const stage = await Stage.begin();
    filtered(stage).set("filter.trap.clean", stage.trap).set("core.fsmonitor", stage.trap);
    const elsewhere = join(temporaryFolder(), "elsewhere");
    renameSync(join(stage.folder, ".git"), elsewhere);
    replace(stage, elsewhere);
    stage.write("new.txt", "n\n");
    await expect(stage.propose()).rejects.toMatchObject({ reason: "repository_replaced", retriable: false });
    expect(existsSync(stage.marker)).toBe(false);
    expect(stage.remote.find("topic")).toBeUndefined();
  });
});

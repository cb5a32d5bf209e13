import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { EnvironmentInitializerSchema } from "#gen/service/v1/environment_pb.js";
import { switchToBranch } from "../../src/runner/git/git-branch.ts";
import { type Checkout, checkOutSources } from "../../src/runner/git/git-checkout.ts";
import { commitAll, hasChanges } from "../../src/runner/git/git-commit.ts";
import { pushBranch } from "../../src/runner/git/git-push.ts";
import type { PushOutcome } from "../../src/runner/git/git-push-outcome.ts";
import { withSnapshot } from "../../src/runner/git/git-snapshot.ts";
import type { GitTools } from "../../src/runner/git/git-tools.ts";
import type { CommitTrailers } from "../../src/runner/git/git-trailers.ts";
import { type BareRepository, bareRepository, runGit } from "../harness/git-repository.ts";
import { realGit } from "../harness/runner-git.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";

afterAll(stopAll);

let tools: GitTools;
beforeAll(async () => {
  tools = await realGit();
});

const noCredential = async () => undefined;
const author = { name: "Grace", email: "grace@example.org" };
const TRAILERS: CommitTrailers = { workflowId: "w", executionId: "e1", actionId: "a1" };
const newRepository = () =>
  bareRepository(temporaryFolder(), { "README.md": "one\n", ".gitignore": "ignored\n" });

/** What a runner does for an action, in a workspace of its own. */
class Action {
  readonly folder: string;
  readonly checkout: Checkout;
  readonly trailers: CommitTrailers;

  static async begin(repository: BareRepository, trailers: Partial<CommitTrailers> = {}): Promise<Action> {
    const tree = temporaryFolder();
    const initializer = create(EnvironmentInitializerSchema, {
      specs: [{ spec: { case: "git", value: { remoteUri: repository.url } } }],
    });
    const [checkout] = await checkOutSources(tools, initializer, { tree, credentialFor: noCredential });
    if (!checkout) throw new Error("nothing was checked out");
    return new Action(join(tree, checkout.location), checkout, { ...TRAILERS, ...trailers });
  }

  private constructor(folder: string, checkout: Checkout, trailers: CommitTrailers) {
    this.folder = folder;
    this.checkout = checkout;
    this.trailers = trailers;
  }

  write(path: string, text: string): this {
    writeFileSync(join(this.folder, path), text);
    return this;
  }

  git(...args: string[]): string {
    return runGit(this.folder, args);
  }

  hasChanges(): Promise<boolean> {
    return withSnapshot(tools, this.folder, ({ repository }) =>
      hasChanges(tools, { repository }, this.checkout.commit),
    );
  }

  commit(message = "Change it"): Promise<string> {
    return withSnapshot(tools, this.folder, async ({ repository, writeBack: handBack }) => {
      const commit = await commitAll(tools, { repository }, { message, author, trailers: this.trailers });
      await handBack();
      return commit;
    });
  }

  switchTo(branch: string): Promise<void> {
    return withSnapshot(tools, this.folder, async ({ repository, writeBack: handBack }) => {
      await switchToBranch(tools, { repository }, branch);
      await handBack();
    });
  }

  async push(branch = "topic", commit?: string): Promise<PushOutcome> {
    const made = commit ?? (await this.commit());
    return withSnapshot(tools, this.folder, ({ repository }) =>
      pushBranch(tools, {
        repository,
        remoteUri: this.checkout.remoteUri,
        commit: made,
        branch,
        trailers: this.trailers,
        credentialFor: noCredential,
      }),
    );
  }
}

describe("whether something changed", () => {
  test.each<[string, boolean, (action: Action) => void]>([
    ["nothing", false, () => undefined],
    ["an ignored file", false, (action) => action.write("ignored", "x")],
    ["a new file", true, (action) => action.write("new", "x")],
    ["an edited file", true, (action) => action.write("README.md", "x")],
    ["a removed file", true, (action) => rmSync(join(action.folder, "README.md"))],
    [
      "a commit of its own",
      true,
      (action) => action.write("new", "x").git("add", ".") + action.git("commit", "-qm", "x"),
    ],
    ["a commit without content", false, (action) => action.git("commit", "-qm", "x", "--allow-empty")],
    [
      "a change and its reversal",
      false,
      (action) => action.write("README.md", "x").write("README.md", "one\n"),
    ],
  ])("%s: %p", async (_, expected, change) => {
    const action = await Action.begin(newRepository());
    change(action);
    expect(await action.hasChanges()).toBe(expected);
  });

  test("in a repository without a commit is whether there is something", async () => {
    const action = await Action.begin(bareRepository(temporaryFolder()));
    expect(await action.hasChanges()).toBe(false);
    action.write("new", "x").git("add", ".");
    action.git("commit", "-qm", "x");
    expect(await action.hasChanges()).toBe(true);
  });
});

describe("a commit of everything", () => {
  test("says who made it, for what, and holds what is not ignored", async () => {
    const repository = newRepository();
    const action = await Action.begin(repository);
    action.write("new", "n").write("ignored", "i");
    rmSync(join(action.folder, "README.md"));
    const commit = await action.commit("Title\n\n# not a comment\nBody\n\n");
    expect(await action.push("topic", commit)).toBe("created");
    expect(repository.find("topic")).toBe(commit);
    expect(repository.list("topic")).toEqual([".gitignore", "new"]);
    expect(repository.messages("topic")[0]).toBe(
      "Title\n\n# not a comment\nBody\n\nChartroom-Workflow: w\nChartroom-Execution: e1\nChartroom-Action: a1",
    );
    expect(repository.git("log", "-1", "--format=%an|%ae|%cn|%ce", "topic")).toBe(
      "Grace|grace@example.org|Grace|grace@example.org",
    );
  });

  test("adds trailers to the last commit of a step that committed everything itself, and keeps its author", async () => {
    const repository = newRepository();
    const action = await Action.begin(repository);
    for (const name of ["one", "two"]) {
      action.write(name, name).git("add", ".");
      action.git("commit", "-qm", `Add ${name}`);
    }
    const commit = await action.commit();
    expect(await action.commit()).toBe(commit);
    await action.push("topic", commit);
    expect(repository.messages("topic").map((message) => message.split("\n")[0])).toEqual([
      "Add two",
      "Add one",
      "first",
    ]);
    expect(repository.messages("topic")[0]).toContain("Chartroom-Action: a1");
    expect(repository.git("log", "-1", "--format=%an %cn", "topic")).toBe("Ada Grace");
  });

  const linkInstead = (action: Action) => {
    rmSync(join(action.folder, "docs"), { recursive: true });
    symlinkSync("other", join(action.folder, "docs"));
  };
  test.each<[string, (action: Action) => void]>([
    ["a folder became a symbolic link to another one", linkInstead],
    [
      "a folder became a symbolic link that leads nowhere",
      (action) => {
        rmSync(join(action.folder, "docs"), { recursive: true });
        symlinkSync("nowhere", join(action.folder, "docs"));
      },
    ],
    [
      "a folder with a file that git takes for unchanged became a symbolic link",
      (action) => {
        action.git("update-index", "--assume-unchanged", "docs/f");
        linkInstead(action);
      },
    ],
    [
      "a folder with a conflict became a symbolic link",
      (action) => {
        action.git("checkout", "-qb", "side");
        action.write("docs/f", "theirs").git("commit", "-qam", "Change it");
        action.git("checkout", "-q", "main");
        action.git("rm", "-q", "docs/f");
        action.git("commit", "-qm", "Remove it");
        expect(() => action.git("merge", "-q", "side")).toThrow();
        linkInstead(action);
      },
    ],
    [
      "a folder became a file",
      (action) => {
        rmSync(join(action.folder, "docs"), { recursive: true });
        action.write("docs", "text");
      },
    ],
    [
      "a file became a folder",
      (action) => {
        rmSync(join(action.folder, "README.md"));
        mkdirSync(join(action.folder, "README.md"));
        action.write("README.md/part", "text");
      },
    ],
  ])("is what `git add --all` would commit where %s", async (_, change) => {
    const repository = bareRepository(temporaryFolder(), {
      "README.md": "one\n",
      "docs/f": "f",
      "docs/g": "g",
      "other/f": "o",
    });
    const action = await Action.begin(repository);
    change(action);
    const copy = join(temporaryFolder(), "copy");
    cpSync(action.folder, copy, { recursive: true, verbatimSymlinks: true });
    runGit(copy, ["add", "--all"]);
    const commit = await action.commit();
    expect(action.git("rev-parse", `${commit}^{tree}`)).toBe(runGit(copy, ["write-tree"]));
    expect(action.git("status", "--porcelain")).toBe("");
  });

  test("leaves commits alone that the remote has", async () => {
    const action = await Action.begin(newRepository());
    expect(await action.commit()).toBe(action.checkout.commit);
  });

  test("runs none of the repository's hooks and signs nothing", async () => {
    const action = await Action.begin(newRepository());
    const trap = join(action.folder, "..", "trapped");
    mkdirSync(join(action.folder, ".git/hooks"));
    for (const hook of [
      "pre-commit",
      "prepare-commit-msg",
      "commit-msg",
      "post-commit",
      "reference-transaction",
    ]) {
      writeFileSync(join(action.folder, ".git/hooks", hook), `#!/bin/sh\ntouch ${trap}\n`, { mode: 0o755 });
    }
    action.git("config", "commit.gpgSign", "true");
    action.git("config", "gpg.program", `touch ${trap}; false`);
    await action.write("new", "n").commit();
    expect(existsSync(trap)).toBe(false);
  });

  test("goes to a branch that is made or moved to what is checked out", async () => {
    const action = await Action.begin(newRepository());
    action.write("new", "n");
    await action.switchTo("topic");
    const commit = await action.commit();
    expect(action.git("rev-parse", "topic")).toBe(commit);
    await action.switchTo("other");
    await action.switchTo("main");
    expect(action.git("rev-parse", "main", "other")).toBe(`${commit}\n${commit}`);
    await expect(action.switchTo("-x")).rejects.toMatchObject({ reason: "branch_name_invalid" });
  });

  test("is the first one in a repository that had none", async () => {
    const repository = bareRepository(temporaryFolder());
    const action = await Action.begin(repository);
    await action.switchTo("topic");
    const commit = await action.write("new", "n").commit();
    expect(await action.push("topic", commit)).toBe("created");
    expect(repository.list("topic")).toEqual(["new"]);
  });

  test("does not go to a repository around the folder when the folder's own is gone", async () => {
    const outer = temporaryFolder();
    runGit(outer, ["init", "-q"]);
    const folder = join(outer, "inner");
    mkdirSync(folder);
    writeFileSync(join(folder, "new"), "n");
    await expect(withSnapshot(tools, folder, async () => undefined)).rejects.toMatchObject({
      reason: "repository_replaced",
    });
    expect(runGit(outer, ["status", "--porcelain"])).toBe("?? inner/");
  });
});

describe("a push", () => {
  test("again is nothing new", async () => {
    const action = (await Action.begin(newRepository())).write("new", "n");
    expect([await action.push(), await action.push()]).toEqual(["created", "unchanged"]);
  });

  test("of a commit that goes on from the branch advances it, no matter who made it", async () => {
    const repository = newRepository();
    repository.commit({ theirs: "t" }, { branch: "topic", from: "main" });
    const action = await Action.begin(repository);
    action.git("reset", "-q", "--hard", "origin/topic");
    expect(await action.write("new", "n").push()).toBe("advanced");
    expect(repository.list("topic")).toContain("theirs");
  });

  test("by a later attempt of the same action replaces what the first one pushed", async () => {
    const repository = newRepository();
    await (await Action.begin(repository)).write("new", "first").push();
    expect(await (await Action.begin(repository)).write("new", "second").push()).toBe("replaced");
    expect(repository.read("topic", "new")).toBe("second");
    expect(repository.messages("topic")).toHaveLength(2);
  });

  test("by a later execution of the same workflow replaces what an earlier one pushed", async () => {
    const repository = newRepository();
    await (await Action.begin(repository)).write("new", "first").push();
    repository.commit({ "README.md": "moved on\n" });
    const later = await Action.begin(repository, { executionId: "e2", actionId: "a2" });
    expect(await later.write("new", "second").push()).toBe("replaced");
    expect(repository.read("topic", "README.md")).toBe("moved on");
  });

  test.each<[string, Partial<CommitTrailers>]>([
    ["another action of the same execution", { actionId: "a2" }],
    ["another workflow", { workflowId: "v", executionId: "e2", actionId: "a2" }],
  ])("does not replace what %s pushed", async (_, trailers) => {
    const repository = newRepository();
    const first = (await Action.begin(repository)).write("new", "first");
    await first.push();
    const other = (await Action.begin(repository, trailers)).write("new", "second");
    await expect(other.push()).rejects.toMatchObject({ reason: "branch_taken", retriable: false });
    expect(repository.read("topic", "new")).toBe("first");
  });

  test.each(["before", "after"])(
    "does not replace what a person pushed %s the workflow did",
    async (order) => {
      const repository = newRepository();
      const person = () => repository.commit({ theirs: "t" }, { branch: "topic", from: "main" });
      if (order === "before") person();
      const first = await Action.begin(repository);
      if (order === "before") first.git("reset", "-q", "--hard", "origin/topic");
      await first.write("new", "first").push();
      if (order === "after") person();
      const later = await Action.begin(repository, { executionId: "e2", actionId: "a2" });
      await expect(later.write("new", "second").push()).rejects.toMatchObject({ reason: "branch_taken" });
      expect(repository.list("topic")).toContain("theirs");
    },
  );

  test("to the remote's default branch is refused", async () => {
    const repository = newRepository();
    const action = (await Action.begin(repository)).write("new", "n");
    await expect(action.push("main")).rejects.toMatchObject({ reason: "branch_is_default" });
    expect(repository.find("main")).toBe(action.checkout.commit);
  });

  test.each(["-f", "HEAD", "a b", "a:b", "", "+x^"])(
    "to a branch of the name %j is refused",
    async (branch) => {
      const action = await Action.begin(newRepository());
      await expect(action.push(branch)).rejects.toMatchObject({ reason: "branch_name_invalid" });
    },
  );

  test("that the remote's own rules forbid says what the remote says", async () => {
    const repository = newRepository();
    mkdirSync(join(repository.folder, "hooks"));
    const hook = "#!/bin/sh\necho 'no pushes on Sundays' >&2\nexit 1\n";
    writeFileSync(join(repository.folder, "hooks/pre-receive"), hook, { mode: 0o755 });
    const action = (await Action.begin(repository)).write("new", "n");
    await expect(action.push()).rejects.toMatchObject({
      reason: "push_refused",
      message: expect.stringContaining("no pushes on Sundays"),
    });
  });

  test("is undone by nothing that the steps set in their repository, and none of it runs", async () => {
    const repository = newRepository();
    const action = (await Action.begin(repository)).write("new", "n");
    const commit = await action.commit();
    const trap = join(action.folder, "..", "trapped");
    const elsewhere = bareRepository(temporaryFolder());
    const settings = {
      "core.sshCommand": `touch ${trap}; false`,
      "core.askPass": `touch ${trap}; false`,
      "credential.helper": `!touch ${trap}; false`,
      [`url.${elsewhere.url}.insteadOf`]: repository.url,
      [`url.${elsewhere.url}.pushInsteadOf`]: repository.url,
      "remote.origin.receivepack": `touch ${trap}; git-receive-pack`,
      "http.followRedirects": "true",
    };
    for (const [name, value] of Object.entries(settings)) action.git("config", name, value);
    mkdirSync(join(action.folder, ".git/hooks"));
    writeFileSync(join(action.folder, ".git/hooks/pre-push"), `#!/bin/sh\ntouch ${trap}\n`, { mode: 0o755 });
    expect(await action.push("topic", commit)).toBe("created");
    expect([repository.find("topic"), elsewhere.find("topic")]).toEqual([commit, undefined]);
    expect(existsSync(trap)).toBe(false);
  });

  test("leaves nothing behind in the runner's folder", async () => {
    const action = (await Action.begin(newRepository())).write("new", "n");
    await action.push();
    await expect(action.push("main")).rejects.toThrow();
    expect(readdirSync(tools.scratch)).toEqual([]);
  });
});

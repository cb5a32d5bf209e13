import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { create } from "@bufbuild/protobuf";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { EnvironmentInitializerSchema } from "#gen/service/v1/environment_pb.js";
import { HostAuthenticationTokenSource as Source } from "#gen/service/v1/runner_configuration_pb.js";
import type { CredentialFor } from "../../src/runner/git/git-access.ts";
import { checkOutSources } from "../../src/runner/git/git-checkout.ts";
import { commitAll } from "../../src/runner/git/git-commit.ts";
import { pushBranch } from "../../src/runner/git/git-push.ts";
import { withSnapshot } from "../../src/runner/git/git-snapshot.ts";
import type { GitTools } from "../../src/runner/git/git-tools.ts";
import type { Isolation } from "../../src/runner/isolation/isolation.ts";
import { type GitHttpServer, serveGit } from "../harness/git-http-server.ts";
import { type BareRepository, bareRepository, runGit } from "../harness/git-repository.ts";
import { maliciousRepository } from "../harness/malicious-repository.ts";
import { realGit, realPrograms } from "../harness/runner-git.ts";
import { temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";
import { bubblewrap, closedFolder, enter, type Place, removeAll, WORK_USER } from "./sandboxes.ts";

const TOKEN = "token-of-the-credential";
const user = String(WORK_USER ?? process.getuid?.());
const author = { name: "Grace", email: "grace@example.org" };
const trailers = { workflowId: "w", executionId: "e", actionId: "a" };
const credentialFor: CredentialFor = async () => ({ token: TOKEN, source: Source.PAT });

let root: string;
let repository: BareRepository;
let isolation: Isolation;
let tools: GitTools;
let server: GitHttpServer | undefined;

beforeAll(async () => {
  root = temporaryFolder();
  repository = bareRepository(root, { "a.txt": "one\n" });
  isolation = await bubblewrap();
  tools = await realGit({ runApart: isolation.runGit, folder: join(closedFolder(), "git") });
});
afterEach(async () => {
  await server?.close();
  server = undefined;
});
afterAll(removeAll);

interface SeenProcess {
  readonly name: string;
  readonly users: string;
  readonly isApart: boolean;
  readonly text: string;
}

/** The processes of this machine whose names begin with a word. */
function processesOf(word: string): SeenProcess[] {
  const ownNamespaces = ["pid", "mnt", "user"].map((each) => readlinkSync(`/proc/self/ns/${each}`));
  return readdirSync("/proc").flatMap((id) => {
    try {
      const text = readFileSync(`/proc/${id}/cmdline`, "utf8") + readFileSync(`/proc/${id}/environ`, "utf8");
      const status = readFileSync(`/proc/${id}/status`, "utf8");
      const name = /^Name:\s*(.*)$/m.exec(status)?.[1] ?? "";
      if (!name.startsWith(word)) return [];
      const users = /^Uid:\s*(.*)$/m.exec(status)?.[1] ?? "";
      const namespaces = ["pid", "mnt", "user"].map((each) => readlinkSync(`/proc/${id}/ns/${each}`));
      const isApart = namespaces.every((each, index) => each !== ownNamespaces[index]);
      return [{ name, users, isApart, text }];
    } catch {
      return [];
    }
  });
}

async function checkOut(remoteUri: string, using: GitTools) {
  // As the runner has it: nobody else can enter the folder of workspaces.
  const tree = join(closedFolder(), "tree");
  mkdirSync(tree);
  const initializer = create(EnvironmentInitializerSchema, {
    specs: [{ spec: { case: "git", value: { remoteUri } } }],
  });
  const [checkout] = await checkOutSources(using, initializer, { tree, credentialFor });
  if (!checkout) throw new Error("nothing was checked out");
  return { folder: join(tree, checkout.location), checkout };
}

/** Commits a change and pushes it as a step does. */
async function changeAndPush(folder: string, remoteUri: string, branch: string, using: GitTools) {
  writeFileSync(join(folder, "b.txt"), `${branch}\n`);
  return withSnapshot(using, folder, async ({ repository: snapshot, borrowed }) => {
    const commit = await commitAll(using, { repository: snapshot }, { message: "x", author, trailers });
    await pushBranch(using, {
      ...{ repository: snapshot, remoteUri, commit, branch, trailers, credentialFor },
      borrowed: [borrowed, join(folder, ".git/objects")],
    });
    return commit;
  });
}

describe("git with a credential", () => {
  test("clones and pushes apart from everything else, as no user that is root", async () => {
    const seen: SeenProcess[] = [];
    server = await serveGit(root, {
      credential: { user: "oauth2", password: TOKEN },
      before: () => {
        // The machine may have others, which reach other servers.
        seen.push(...processesOf("git-remote-http").filter(({ text }) => text.includes(`${server?.url}/`)));
        return false;
      },
    });
    const remoteUri = `${server.url}${repository.folder.slice(root.length)}`;
    const { folder } = await checkOut(remoteUri, tools);
    expect(readFileSync(join(folder, "a.txt"), "utf8")).toBe("one\n");
    const commit = await changeAndPush(folder, remoteUri, "by-http", tools);
    expect(repository.find("by-http")).toBe(commit);
    expect(seen.length).toBeGreaterThan(3);
    for (const { users, isApart, text } of seen) {
      expect(users.split("\t")).toEqual([user, user, user, user]);
      expect(isApart).toBe(true);
      expect(text).not.toContain(TOKEN);
    }
  });

  test("uses a key outside: it sees neither that, nor an agent, nor ssh's settings", async () => {
    const keys = closedFolder();
    const key = join(keys, "id_ed25519");
    writeFileSync(key, "key\n", { mode: 0o600 });
    const bin = closedFolder();
    // In place of the host: does there what it was asked for.
    const script = `#!/bin/sh
printf '%s\\n' "$CHARTROOM_SSH_KEY" "$GIT_PROTOCOL" "$*" >> ${bin}/calls
for each in /proc/[0-9]*/environ; do
  grep -aq 'GIT_SSH=.*/ssh-relay' $each 2>/dev/null && tr '\\0' '\\n' < $each >> ${bin}/variables
done
for last; do :; done
exec sh -c "$last"
`;
    writeFileSync(join(bin, "ssh"), script, { mode: 0o755 });
    const programs = { ...realPrograms, path: `${bin}:${realPrograms.path}` };
    const resolve = async () => ["192.0.2.1"];
    const using = await realGit({
      ...{ programs, resolve, sshKeyFile: key, runApart: isolation.runGit },
      folder: join(closedFolder(), "git"),
    });
    const remoteUri = `ssh://git@git.example.org${repository.folder}`;
    const { folder } = await checkOut(remoteUri, using);
    expect(readFileSync(join(folder, "a.txt"), "utf8")).toBe("one\n");
    const commit = await changeAndPush(folder, remoteUri, "by-ssh", using);
    expect(repository.find("by-ssh")).toBe(commit);
    const calls = readFileSync(join(bin, "calls"), "utf8");
    expect(calls).toContain(`${key}\nversion=2\n`);
    expect(calls).toContain("git-receive-pack");
    expect(calls).toContain("IdentityAgent=none");
    const variables = readFileSync(join(bin, "variables"), "utf8");
    expect(variables).toContain("GIT_DIR=");
    for (const word of [keys, "SSH_AUTH_SOCK", "known_hosts"]) expect(variables).not.toContain(word);
  });

  test("reports what ssh complains about", async () => {
    const bin = closedFolder();
    const script = "#!/bin/sh\necho 'git@git.example.org: Permission denied (publickey).' >&2\nexit 255\n";
    writeFileSync(join(bin, "ssh"), script, { mode: 0o755 });
    const programs = { ...realPrograms, path: `${bin}:${realPrograms.path}` };
    const make = (runApart: GitTools["runApart"]) =>
      realGit({
        programs,
        resolve: async () => ["192.0.2.1"],
        runApart,
        folder: join(closedFolder(), "git"),
      });
    const reasons = await Promise.all(
      [isolation.runGit, undefined].map(async (runApart) =>
        checkOut(`ssh://git@git.example.org${repository.folder}`, await make(runApart)).then(
          () => "none",
          ({ reason }) => reason,
        ),
      ),
    );
    expect(reasons[0]).toBe(reasons[1]);
    expect(reasons[0]).toMatch(/unauthorized/);
  });
});

test("git commits what is in a tree, and no commit of a repository to which that leads", async () => {
  const elsewhere = bareRepository(temporaryFolder(), { "a.txt": "one\n" });
  const staged = async (using: GitTools) => {
    const { folder } = await checkOut(`file://${repository.folder}`, using);
    mkdirSync(join(folder, "by-file"));
    writeFileSync(join(folder, "by-file/.git"), `gitdir: ${elsewhere.folder}\n`);
    mkdirSync(join(folder, "by-link"));
    symlinkSync(elsewhere.folder, join(folder, "by-link/.git"));
    runGit(folder, ["init", "--quiet", "inside"]);
    runGit(join(folder, "inside"), ["commit", "--quiet", "--allow-empty", "-m", "x"]);
    writeFileSync(join(folder, "b.txt"), "two\n");
    return withSnapshot(using, folder, async ({ repository: snapshot, borrowed, writeBack }) => {
      const call = { repository: snapshot, readable: [borrowed] };
      const commit = await commitAll(using, call, { message: "x", author, trailers });
      await writeBack();
      return runGit(folder, ["ls-tree", "--name-only", commit]).split("\n");
    });
  };
  expect(await staged(tools)).toEqual(["a.txt", "b.txt", "inside"]);
  // Outside the sandbox it goes where the tree leads.
  const outside = await staged({ ...tools, runApart: undefined });
  expect(outside).toEqual(["a.txt", "b.txt", "by-file", "by-link", "inside"]);
});

describe("a repository that isolated work has left", () => {
  const outside = temporaryFolder();
  const mark = join(outside, "mark");

  /** Has work in a sandbox run a script in a new checkout, which lies in its workspace. */
  async function leftBy(script: string) {
    const { folder } = await checkOut(repository.url, tools);
    const own = join(folder, "../..");
    const workspace = { folder: own, tree: join(own, "tree"), home: join(own, "home") };
    const place = await enter(isolation, undefined, undefined, workspace);
    expect(await place.sh(`cd ${folder} && ${script}`)).toMatchObject({ exit: 0 });
    return folder;
  }

  test("starts no hook, filter or monitor outside, by a git directory of the runner's own, and leads to no other repository, when it is pushed", async () => {
    const elsewhere = bareRepository(outside, { "a.txt": "one\n" });
    const submodule = `git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),m
printf '[submodule "m"]\\n\\tpath = m\\n\\turl = ${elsewhere.url}\\n' > .gitmodules`;
    const folder = await leftBy(`${submodule}; ${maliciousRepository(mark, elsewhere.folder)}`);
    const commit = await changeAndPush(folder, repository.url, "cheating", tools);
    expect(repository.find("cheating")).toBe(commit);
    expect(existsSync(mark)).toBe(false);
    expect(elsewhere.find("cheating")).not.toBe(commit);
    // What git does that is not careful: otherwise this would show nothing.
    const careless = ["-c", "safe.directory=*", "-C", folder, "status"];
    await realPrograms.run({
      ...{ program: "git", args: careless, folder: "/", environment: { PATH: realPrograms.path } },
    });
    expect(existsSync(mark)).toBe(true);
  });

  test.each([
    [
      "alternates",
      (other: string) => `mkdir -p .git/objects/info && echo ${other}/objects > .git/objects/info/alternates`,
    ],
    ["a file in the place of .git", (other: string) => `mv .git ../git && echo gitdir: ${other} > .git`],
    ["a link in the place of .git", (other: string) => `mv .git ../git && ln -s ${other} .git`],
    [
      "a link in the place of an object",
      (other: string) => `mkdir .git/objects/aa && ln -s ${other}/HEAD .git/objects/aa/${"b".repeat(38)}`,
    ],
  ])("is refused with %s", async (_, script) => {
    const other = bareRepository(temporaryFolder(), { "secret.txt": "hidden\n" });
    const folder = await leftBy(`rm -rf .git/objects/aa; ${script(other.folder)}`);
    await expect(changeAndPush(folder, repository.url, "never", tools)).rejects.toMatchObject({
      reason: "repository_replaced",
    });
  });
});

describe("in the sandbox of git", () => {
  let place: Place;
  let own: string;
  beforeAll(async () => {
    place = await enter(isolation);
    own = closedFolder();
    writeFileSync(join(place.workspace.tree, "file"), "hidden\n");
  });

  /** Runs a script where git runs, and outside. */
  async function scripted(script: string, variables: Readonly<Record<string, string>> = {}) {
    const command = {
      ...{ program: "sh", args: ["-c", script], folder: own, keepBytes: 10_000 },
      environment: { PATH: realPrograms.path, ...variables },
    };
    const { runGit: runApart } = isolation;
    if (!runApart) throw new Error("git has no sandbox");
    const apart = await runApart({ writable: [own], readable: [] }, command);
    const outside = await realPrograms.run(command);
    return [apart, outside].map(({ exit, stdout }) => ({ exit, text: stdout.toString() }));
  }

  test.each([
    ["files of work", 'grep hidden "$TREE/file"'],
    ["what the runner keeps", 'ls "$RUNNER"'],
    ["other folders of the machine", 'ls "$OTHER"'],
    ["an agent of ssh by its socket", 'ls "$OTHER/agent"'],
  ])("are not %s, by its mounts", async (_, script) => {
    const other = temporaryFolder();
    writeFileSync(join(other, "agent"), "");
    const variables = { TREE: place.workspace.tree, RUNNER: tools.home, OTHER: other };
    const [apart, outside] = await scripted(script, variables);
    expect(apart).not.toMatchObject({ exit: 0 });
    expect(outside).toMatchObject({ exit: 0 });
  });

  test("are no processes of the work, and in that of the work none of git", async () => {
    const word = `${4_000 + process.pid}.${Date.now() % 1_000}`;
    const stop = new AbortController();
    const started = Promise.withResolvers<void>();
    const work = place.run({
      program: "sh",
      args: ["-c", `echo up; exec sleep ${word}1`],
      folder: place.workspace.tree,
      environment: { PATH: realPrograms.path },
      signal: stop.signal,
      onOutput: () => started.resolve(),
    });
    await started.promise;
    // As an expression that does not match itself.
    const look = (mark: string) => `cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -x "${mark}"`;
    const untilSleeping = (mark: string) =>
      until(
        () => realPrograms.run(besides(look(mark))),
        ({ exit }) => exit === 0,
      );
    // What says that it is up becomes the other program a little later.
    await untilSleeping(`${word}[1]`);
    const [apart, outside] = await scripted(look(`${word}[1]`));
    stop.abort();
    await work;
    expect(apart).not.toMatchObject({ exit: 0 });
    expect(outside).toMatchObject({ exit: 0 });
    const ask = Promise.withResolvers<void>();
    const { runGit: runApart } = isolation;
    const end = new AbortController();
    const git = runApart?.(
      { writable: [own], readable: [] },
      {
        ...{ program: "sh", args: ["-c", `echo up; exec sleep ${word}2`], folder: own, signal: end.signal },
        environment: { PATH: realPrograms.path, CREDENTIAL: word },
        onOutput: () => ask.resolve(),
      },
    );
    await ask.promise;
    await untilSleeping(`${word}[2]`);
    const found = await place.sh(`${look(`${word}[2]`)} || grep -a CREDENTIA[L] /proc/[0-9]*/environ`);
    expect((await realPrograms.run(besides(look(`${word}[2]`)))).exit).toBe(0);
    end.abort();
    await git;
    expect(found.exit).not.toBe(0);
  });

  const besides = (script: string) => ({
    ...{ program: "sh", args: ["-c", script], folder: "/", environment: { PATH: realPrograms.path } },
  });

  test("is the descriptor to the runner, which work has not", async () => {
    const { runGit: runApart } = isolation;
    const asked = Promise.withResolvers<string>();
    const command = {
      ...{ program: "sh", args: ["-c", "echo question >&6; read answer <&6; echo $answer"], folder: own },
      ...{ environment: { PATH: realPrograms.path }, keepBytes: 100 },
      channel: (stream: Duplex) => {
        stream.once("data", (bytes) => {
          asked.resolve(String(bytes));
          stream.write("answer\n");
        });
      },
    };
    const result = await runApart?.({ writable: [own], readable: [] }, command);
    expect([await asked.promise, result?.stdout.toString()]).toEqual(["question\n", "answer\n"]);
    expect((await place.sh("echo question >&6")).exit).not.toBe(0);
  });
});

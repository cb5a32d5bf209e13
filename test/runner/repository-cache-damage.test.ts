import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { CachingRunner } from "../harness/caching-runner.ts";
import { type BareRepository, bareRepository, runGit } from "../harness/git-repository.ts";
import { endNodes, startNode } from "../harness/node-process.ts";
import { realPrograms } from "../harness/runner-git.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";

afterEach(endNodes);
afterAll(stopAll);

let runner: CachingRunner;
let remote: BareRepository;
let remoteUri: string;
/** The folder of the cached repository. */
let cached: string;
beforeEach(async () => {
  runner = await CachingRunner.start();
  remote = bareRepository(temporaryFolder(), { "a.txt": TEXT });
  remoteUri = remote.url;
  await runner.clone({ remoteUri });
  [cached = ""] = runner.repositories();
  runner.takeCommands();
});

const TEXT = `${"one ".repeat(100)}\n`;
const REUSED = ["ls-remote", "checkout"];
const FETCHED = ["ls-remote", "fetch", "for-each-ref", "checkout"];
const CHECKED = ["ls-remote", "fsck", "checkout"];

const cachedFile = (suffix: string) =>
  join(cached, readdirSync(cached).find((name) => name.endsWith(suffix)) ?? "");
const write = (file: string, content: string | Uint8Array) => {
  mkdirSync(dirname(file), { recursive: true });
  if (existsSync(file)) chmodSync(file, 0o600);
  writeFileSync(file, content);
};
/** Returns the content of a file with one byte changed. */
const withError = (file: string, at: number) => {
  const bytes = readFileSync(file);
  bytes[at] = (bytes[at] ?? 0) ^ 0xff;
  return bytes;
};
const readState = () => JSON.parse(readFileSync(join(cached, "state.json"), "utf8"));
const writeState = (state: object) => write(join(cached, "state.json"), JSON.stringify(state));
/** Makes the description of the cache fit its files, as a program that changes those would. */
const describeFiles = () => {
  const state = readState();
  for (const file of state.files) {
    const bytes = readFileSync(join(cached, file.name));
    Object.assign(file, { bytes: bytes.length, digest: createHash("sha256").update(bytes).digest("hex") });
  }
  writeState(state);
};
/** Clones and expects a whole repository, made by these commands of git. */
const expectClone = async (commands: readonly string[]) => {
  const { folder, git } = await runner.clone({ remoteUri });
  expect(runner.takeCommands()).toEqual(commands);
  expect(readFileSync(join(folder, "a.txt"), "utf8")).toBe(TEXT);
  expect(git("fsck", "--full")).toBe("");
  return { folder, git };
};

describe("a cache whose packs were changed", () => {
  test.each<[string, () => void]>([
    ["a byte of a pack", () => write(cachedFile(".pack"), withError(cachedFile(".pack"), 40))],
    ["a byte of an index", () => write(cachedFile(".idx"), withError(cachedFile(".idx"), 1_100))],
    [
      "the end of a pack",
      () => write(cachedFile(".pack"), readFileSync(cachedFile(".pack")).subarray(0, 50)),
    ],
    ["a pack that is gone", () => rmSync(cachedFile(".pack"))],
    ["an index that is gone", () => rmSync(cachedFile(".idx"))],
    [
      "a link in place of a pack",
      () => {
        const [pack, other] = [cachedFile(".pack"), join(temporaryFolder(), "other")];
        writeFileSync(other, "secret");
        rmSync(pack);
        symlinkSync(other, pack);
      },
    ],
    ["everything", () => rmSync(cached, { recursive: true })],
  ])("is thrown away, and made again: %s", async (_, change) => {
    change();
    await expectClone(FETCHED);
    expect(runner.warnings).toHaveLength(1);
    expect(runner.warnings[0]).toContain(cached);
    await expectClone(REUSED);
  });

  test.each<[string, () => void]>([
    ["a byte of a pack", () => write(cachedFile(".pack"), withError(cachedFile(".pack"), 40))],
    ["a pack that is gone", () => rmSync(cachedFile(".pack"))],
    [
      "a byte of a pack, with its digest",
      () => {
        write(cachedFile(".pack"), withError(cachedFile(".pack"), 40));
        describeFiles();
      },
    ],
    ["a text of the same length under the hash of the file", () => forgeText(TEXT.replaceAll("one", "two"))],
    ["no packs", () => writeState({ ...readState(), files: [] })],
    ["a commit that is not there", () => writeState({ ...readState(), refs: otherRefs("refs/tags/v1") })],
    ["a ref that replaces others", () => writeState({ ...readState(), refs: otherRefs("refs/replace/x") })],
    ["no refs that git writes", () => writeState({ ...readState(), refs: "../../../etc/passwd" })],
  ])("is thrown away also after a restart: %s", async (_, change) => {
    change();
    await runner.restart();
    const { folder, git } = await runner.clone({ remoteUri });
    expect(runner.takeCommands()).toContain("fetch");
    expect(readFileSync(join(folder, "a.txt"), "utf8")).toBe(TEXT);
    expect(git("for-each-ref", "--format=%(refname)")).toBe("refs/heads/main\nrefs/remotes/origin/main");
    expect(git("fsck", "--full", "--unreachable")).toBe("");
    expect(runner.warnings).toHaveLength(1);
    await expectClone(REUSED);
  });

  test.each<[string, () => void]>([
    ["no JSON", () => write(join(cached, "state.json"), "{")],
    [
      "a path as the name of a pack",
      () => writeState({ refs: "", files: [{ name: "../x", bytes: 1, digest: "x" }] }),
    ],
    ["no file", () => rmSync(join(cached, "state.json"))],
  ])("is gone after a restart when nothing describes it: %s", async (_, change) => {
    change();
    await runner.restart();
    expect(runner.repositories()).toEqual([]);
    await expectClone(FETCHED);
  });
});

test("a cache is checked once after a restart, and taken from the next time without a check", async () => {
  await runner.restart();
  await expectClone(CHECKED);
  await expectClone(REUSED);
  const next = remote.commit({ "b.txt": "b\n" });
  await runner.restart();
  const { git } = await expectClone(["ls-remote", "fsck", "fetch", "for-each-ref", "rev-list", "checkout"]);
  expect(git("rev-parse", "HEAD")).toBe(next);
  expect(runner.warnings).toEqual([]);
});

test("nothing in a cache but the packs reaches git or a workspace", async () => {
  const marker = join(temporaryFolder(), "marker");
  const trap = join(temporaryFolder(), "trap");
  write(trap, `#!/bin/sh\ntouch ${marker}\n`);
  chmodSync(trap, 0o755);
  const secret = bareRepository(temporaryFolder(), { secret: "s" });
  const plant = () => {
    for (const folder of [cached, join(cached, ".git")]) {
      const settings = [
        "[core]",
        `fsmonitor = ${trap}`,
        `sshCommand = ${trap}`,
        `hooksPath = ${cached}/hooks`,
      ];
      write(join(folder, "config"), `${settings.join("\n")}\nalternateRefsCommand = ${trap}\n`);
      for (const hook of ["post-checkout", "reference-transaction", "post-index-change"]) {
        write(join(folder, "hooks", hook), readFileSync(trap));
        chmodSync(join(folder, "hooks", hook), 0o755);
      }
      for (const info of ["info", "objects/info"]) {
        write(join(folder, info, "alternates"), `${secret.folder}/objects\n`);
      }
      write(join(folder, "info/grafts"), `${remote.find("main")} ${secret.find("main")}\n`);
      write(join(folder, "info/attributes"), "* filter=trap\n");
      write(join(folder, "shallow"), `${remote.find("main")}\n`);
      write(join(folder, "packed-refs"), `${secret.find("main")} refs/replace/${remote.find("main")}\n`);
    }
  };
  plant();
  await expectClone(REUSED);
  remote.commit({ "b.txt": "b\n" });
  for (const restart of [false, true]) {
    if (restart) await runner.restart();
    plant();
    const { folder, git } = await runner.clone({ remoteUri });
    expect(git("rev-list", "--count", "HEAD")).toBe("2");
    expect(git("for-each-ref", "--format=%(refname)")).toBe("refs/heads/main\nrefs/remotes/origin/main");
    expect(readdirSync(join(folder, ".git")).sort()).toEqual(
      expect.arrayContaining(["HEAD", "config", "index", "objects", "packed-refs", "refs"]),
    );
    for (const name of ["hooks", "shallow", "info/grafts", "info/attributes", "objects/info/alternates"]) {
      expect([name, existsSync(join(folder, ".git", name))]).toEqual([name, false]);
    }
    expect(readFileSync(join(folder, ".git/config"), "utf8")).not.toContain(trap);
  }
  expect(existsSync(marker)).toBe(false);
});

test("a check that ends with its work says nothing against the cache", async () => {
  const path = temporaryFolder();
  const began = join(path, "began");
  const program = `#!/bin/sh
case " $* " in *" fsck "*) echo > ${began}; exec sleep 60 ;; esac
PATH=${JSON.stringify(realPrograms.path)} exec git "$@"
`;
  write(join(path, "git"), program);
  chmodSync(join(path, "git"), 0o755);
  const slow = await CachingRunner.start({ folder: runner.folder, path: `${path}:${realPrograms.path}` });
  const ending = new AbortController();
  const checking = slow.clone({ remoteUri }, { signal: ending.signal });
  checking.catch(() => undefined);
  await until(
    () => existsSync(began),
    (isThere) => isThere,
  );
  ending.abort(new Error("the lease is lost"));
  await expect(checking).rejects.toThrow("the lease is lost");
  expect(slow.warnings).toEqual([]);
  await runner.restart();
  await expectClone(CHECKED);
});

describe("a fetch that is killed", () => {
  /** A folder with a git that is killed in the middle of each fetch while a file is there. */
  function killedGit(): { path: string; file: string } {
    const path = temporaryFolder();
    const file = join(path, "kills");
    write(
      join(path, "git"),
      `#!/bin/sh
if [ -e ${file} ]; then case " $* " in *" fetch "*)
  : > "$GIT_DIR/objects/pack/tmp_pack_x"; : > "$GIT_DIR/packed-refs.lock"; : > "$GIT_DIR/shallow.lock"
  echo > ${file}; while [ -e ${file}.waits ]; do sleep 0.05; done; kill -9 $$ ;;
esac; fi
PATH=${JSON.stringify(realPrograms.path)} exec git "$@"
`,
    );
    chmodSync(join(path, "git"), 0o755);
    return { path: `${path}:${realPrograms.path}`, file };
  }

  test("leaves the cache as it was: git itself", async () => {
    const { path, file } = killedGit();
    runner = await CachingRunner.start({ folder: runner.folder, path });
    await expectClone(["--version", "ls-remote", "fsck", "init", "checkout"]);
    const next = remote.commit({ "b.txt": "b\n" });
    write(file, "");
    await expect(runner.clone({ remoteUri })).rejects.toMatchObject({ reason: "git_failed" });
    rmSync(file);
    runner.takeCommands();
    const { git } = await expectClone(["ls-remote", "fetch", "for-each-ref", "rev-list", "checkout"]);
    expect(git("rev-parse", "HEAD")).toBe(next);
    await expectClone(REUSED);
    expect(runner.warnings).toEqual([]);
  });

  test("leaves the cache as it was: the runner", async () => {
    const { path, file } = killedGit();
    for (const each of [file, `${file}.waits`]) write(each, "");
    const next = remote.commit({ "b.txt": "b\n" });
    const killed = startNode(
      `
      import { CachingRunner } from "./test/harness/caching-runner.ts";
      const [, folder, path, remoteUri] = process.argv;
      const runner = await CachingRunner.start({ folder, path });
      await runner.clone({ remoteUri });
      `,
      runner.folder,
      path,
      remoteUri,
    );
    await until(
      () => readFileSync(file, "utf8"),
      (text) => text !== "",
    );
    await killed.kill();
    rmSync(`${file}.waits`);
    await runner.restart();
    const { git } = await expectClone(["ls-remote", "fsck", "fetch", "for-each-ref", "rev-list", "checkout"]);
    expect(git("rev-parse", "HEAD")).toBe(next);
    expect(runner.warnings).toEqual([]);
  });

  test("leaves no half of what it adds to the cache", async () => {
    const names = readdirSync(cached);
    for (const name of names) write(join(cached, `${name}.draft`), "half");
    write(join(cached, `pack-${"a".repeat(40)}.pack`), "a pack that no state has yet");
    await runner.restart();
    remote.commit({ "b.txt": "b\n" });
    await runner.clone({ remoteUri });
    runner.takeCommands();
    const { folder } = await expectClone(REUSED);
    const packs = readdirSync(join(folder, ".git/objects/pack")).filter((name) => /\.(pack|idx)$/.test(name));
    expect(packs).toHaveLength(4);
    expect(readdirSync(cached).sort()).toEqual([...packs, "state.json"].sort());
  });
});

/** Returns the cached refs and one more, to an object that does not exist. */
function otherRefs(name: string): string {
  return `${readState().refs}${"1".repeat(40)} ${name}\n`;
}

/**
 * Replaces the cached pack by one that is whole in the eyes of git, but has another
 * text of the file under the hash of the true one.
 */
function forgeText(text: string): void {
  const blob = runGit(remote.folder, ["hash-object", "-w", "--stdin"], { input: text });
  const ids = ["main", "main^{tree}"].map((name) => remote.find(name) ?? "");
  const to = join(temporaryFolder(), "pack");
  const hash = runGit(remote.folder, ["pack-objects", "-q", to], { input: [...ids, blob].join("\n") });
  const index = indexWithAnotherName(
    readFileSync(`${to}-${hash}.idx`),
    blob,
    remote.find("main:a.txt") ?? "",
  );
  const names = [`pack-${hash}.idx`, `pack-${hash}.pack`];
  write(join(cached, names[0] ?? ""), index);
  write(join(cached, names[1] ?? ""), readFileSync(`${to}-${hash}.pack`));
  writeState({ ...readState(), files: names.map((name) => ({ name })) });
  describeFiles();
}

/** Returns the index of a pack (git's gitformat-pack, version 2) with one object under another name. */
function indexWithAnotherName(index: Buffer, from: string, to: string): Buffer {
  const count = index.readUInt32BE(8 + 255 * 4);
  const part = (start: number, size: number) =>
    Array.from({ length: count }, (_, at) => index.subarray(start + at * size, start + (at + 1) * size));
  const start = 8 + 256 * 4;
  const [names, checksums, offsets] = [
    part(start, 20),
    part(start + 20 * count, 4),
    part(start + 24 * count, 4),
  ];
  const objects = names
    .map((name, at) => ({
      name: name.toString("hex") === from ? Buffer.from(to, "hex") : name,
      checksum: checksums[at] ?? Buffer.alloc(4),
      offset: offsets[at] ?? Buffer.alloc(4),
    }))
    .sort((a, b) => a.name.compare(b.name));
  const fanOut = Buffer.alloc(1_024);
  for (let first = 0; first < 256; first++) {
    fanOut.writeUInt32BE(objects.filter(({ name }) => (name[0] ?? 0) <= first).length, first * 4);
  }
  const body = Buffer.concat([
    index.subarray(0, 8),
    fanOut,
    ...objects.map(({ name }) => name),
    ...objects.map(({ checksum }) => checksum),
    ...objects.map(({ offset }) => offset),
    index.subarray(-40, -20),
  ]);
  return Buffer.concat([body, createHash("sha1").update(body).digest()]);
}

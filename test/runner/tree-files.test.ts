import { execFileSync } from "node:child_process";
import { linkSync, mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "@jest/globals";
import { Secrets } from "../../src/domain/secrets.ts";
import { listTree, MAX_READ_BYTES, readTree } from "../../src/runner/questions/tree-files.ts";
import { temporaryFolder } from "../harness/server.ts";

let workspace: { folder: string; tree: string; home: string };
let tree: string;
let secrets: Secrets;
beforeEach(() => {
  const folder = join(temporaryFolder(), "workspaces", "an-id");
  workspace = { folder, tree: join(folder, "tree"), home: join(folder, "home") };
  tree = workspace.tree;
  mkdirSync(join(tree, "ship/deck"), { recursive: true });
  mkdirSync(workspace.home);
  mkdirSync(join(tree, "ship/.git"));
  write("ship/.git/config", "private");
  write("ship/a.txt", "one\n");
  writeFileSync(join(folder, "complete.json"), "the runner's own");
  secrets = new Secrets();
});

const write = (path: string, text: string | Buffer) => writeFileSync(join(tree, path), text);
const read = async (path: string, offset = 0, maxBytes = MAX_READ_BYTES) => {
  const { data, readBytes } = await readTree(workspace, path, { offset, maxBytes, secrets });
  return { text: data.toString(), readBytes };
};
const list = async (path: string, offset = 0, limit = 100) => {
  const { entries, hasMore, leftOut } = await listTree(workspace, path, { offset, limit });
  return { names: entries.map(({ name }) => name.toString("latin1")), hasMore, leftOut };
};
const refused = (reason: string) => expect.objectContaining({ reason });

describe("a folder of a tree", () => {
  test("is listed by the bytes of the names in pages, without what belongs to git", async () => {
    write("ship/B", "");
    expect(await list("ship")).toEqual({ names: ["B", "a.txt", "deck"], hasMore: false, leftOut: 0 });
    expect(await list("ship", 0, 2)).toEqual({ names: ["B", "a.txt"], hasMore: true, leftOut: 0 });
    expect(await list("ship", 2, 2)).toEqual({ names: ["deck"], hasMore: false, leftOut: 0 });
    expect((await list("")).names).toEqual(["ship"]);
    expect((await list("ship/deck")).names).toEqual([]);
  });

  test("may hold names that are no text, and of more than one line", async () => {
    const odd = Buffer.from([0x61, 0xff, 0x0a, 0x1b, 0x5b]);
    writeFileSync(Buffer.concat([Buffer.from(`${tree}/ship/deck/`), odd]), "");
    expect((await list("ship/deck")).names).toEqual([odd.toString("latin1")]);
  });
});

describe("a file of a tree", () => {
  test("is read in parts", async () => {
    write("ship/a.txt", "0123456789");
    expect(await read("ship/a.txt")).toEqual({ text: "0123456789", readBytes: 10 });
    expect(await read("ship/a.txt", 2, 3)).toEqual({ text: "234", readBytes: 3 });
    expect(await read("ship/a.txt", 9, 3)).toEqual({ text: "9", readBytes: 1 });
    expect(await read("ship/a.txt", 10, 3)).toEqual({ text: "", readBytes: 0 });
    expect(await read("ship/a.txt", 2 ** 40, 3)).toEqual({ text: "", readBytes: 0 });
  });

  test("shows no secret, nor a piece of one, wherever it is cut", async () => {
    secrets.add("hunter2hunter2");
    write("ship/a.txt", "x hunter2hunter2 y");
    expect((await read("ship/a.txt")).text).toBe("x *** y");
    for (let offset = 0; offset < 18; offset++) {
      for (let bytes = 1; bytes < 18; bytes++) {
        const { text, readBytes } = await read("ship/a.txt", offset, bytes);
        expect(text).toMatch(/^(x? ?)?(\*\*\*)?( ?y?)?$/);
        expect(readBytes).toBe(Math.min(bytes, 18 - offset));
      }
    }
  });

  test("of an endless size is read no further than asked", async () => {
    execFileSync("truncate", ["--size", "1T", join(tree, "ship/large")]);
    expect((await read("ship/large", 2 ** 35, 4)).readBytes).toBe(4);
  });
});

describe("a path", () => {
  test.each([
    ["/etc/passwd"],
    ["../complete.json"],
    ["ship/../../complete.json"],
    ["ship/./a.txt"],
    ["ship//a.txt"],
    ["ship/a.txt/"],
    ["ship/a\0.txt"],
    ["ship/.git/config"],
    ["ship/.GIT/config"],
    [".git"],
  ])("such as %j is refused", async (path) => {
    await expect(read(path)).rejects.toEqual(refused("path_refused"));
    await expect(list(path)).rejects.toEqual(refused("path_refused"));
  });

  test("through a link is refused, wherever the link leads", async () => {
    symlinkSync("a.txt", join(tree, "ship/link"));
    symlinkSync("../..", join(tree, "ship/up"));
    symlinkSync("deck", join(tree, "ship/inside"));
    symlinkSync(".git", join(tree, "ship/git"));
    write("ship/deck/b.txt", "");
    for (const path of ["ship/link", "ship/up/complete.json", "ship/inside/b.txt", "ship/git/config"])
      await expect(read(path)).rejects.toEqual(refused("file_unfit"));
    for (const path of ["ship/up", "ship/inside", "ship/git"])
      await expect(list(path)).rejects.toEqual(refused("file_unfit"));
    expect((await list("ship")).names).toContain("link");
  });

  test("to nothing, to a folder or to a pipe brings no content, and does not wait", async () => {
    execFileSync("mkfifo", [join(tree, "ship/pipe")]);
    await expect(read("ship/none")).rejects.toEqual(refused("file_absent"));
    await expect(read("ship/a.txt/b")).rejects.toEqual(refused("file_unfit"));
    await expect(read("ship/deck")).rejects.toEqual(refused("file_unfit"));
    await expect(read("ship/pipe")).rejects.toEqual(refused("file_unfit"));
    await expect(list("ship/a.txt")).rejects.toEqual(refused("file_unfit"));
    await expect(list("none")).rejects.toEqual(refused("file_absent"));
    await expect(list(`ship/${"n".repeat(300)}`)).rejects.toEqual(refused("file_unfit"));
  });

  test("leads nowhere else when the tree itself is replaced by a link", async () => {
    renameSync(tree, `${tree}-moved`);
    symlinkSync("/", tree);
    await expect(read("etc/hostname")).rejects.toEqual(refused("file_unfit"));
    unlinkSync(tree);
    symlinkSync(`${tree}-moved`, tree);
    await expect(read("ship/a.txt")).rejects.toEqual(refused("file_unfit"));
  });

  test("never shows another file, while folders and links change places", async () => {
    const outside = join(workspace.folder, "outside");
    mkdirSync(outside);
    writeFileSync(join(outside, "a.txt"), "outside");
    write("ship/deck/a.txt", "inside");
    let isOver = false;
    const swapping = (async () => {
      while (!isOver) {
        renameSync(join(tree, "ship/deck"), join(tree, "ship/kept"));
        symlinkSync(outside, join(tree, "ship/deck"));
        await new Promise(setImmediate);
        unlinkSync(join(tree, "ship/deck"));
        renameSync(join(tree, "ship/kept"), join(tree, "ship/deck"));
        await new Promise(setImmediate);
      }
    })();
    const seen = new Map<string, number>();
    for (let round = 0; round < 300; round++) {
      const result = await read("ship/deck/a.txt").then(
        ({ text }) => text,
        ({ reason }) => reason,
      );
      seen.set(result, (seen.get(result) ?? 0) + 1);
    }
    isOver = true;
    await swapping;
    expect([...seen.keys()].filter((result) => !/^(inside|file_unfit|file_absent)$/.test(result))).toEqual(
      [],
    );
  });

  test("to a hard link shows what the tree's owner has put there, masked", async () => {
    secrets.add("the runner's own");
    linkSync(join(workspace.folder, "complete.json"), join(tree, "ship/linked"));
    expect((await read("ship/linked")).text).toBe("***");
    rmSync(join(tree, "ship/linked"));
  });
});

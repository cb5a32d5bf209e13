import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "@jest/globals";
import { endNodes, startNode } from "../test/harness/node-process.ts";
import { stopAll, temporaryFolder } from "../test/harness/server.ts";
import { addSecret, readKeyFile } from "./key-file.ts";
import { keysFrom, loadKeys } from "./keys.ts";

afterAll(async () => {
  await endNodes();
  await stopAll();
});

const newFile = () => join(temporaryFolder(), "key.json");

describe("the key file", () => {
  test("is made once, for its owner alone, and then only read", () => {
    const file = newFile();
    const made = loadKeys(file);
    const content = readFileSync(file, "utf8");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const { secrets } = JSON.parse(content);
    expect(secrets.map((text: string) => Buffer.from(text, "base64").length)).toEqual([32]);
    expect(loadKeys(file).ids).toEqual([made.id]);
    expect(readFileSync(file, "utf8")).toBe(content);
    expect(readdirSync(join(file, ".."))).toEqual(["key.json"]);
  });

  test("holds another secret each time that one is made", () => {
    expect(loadKeys(newFile()).id).not.toBe(loadKeys(newFile()).id);
  });

  test("is read when only its owner may read it", () => {
    const file = newFile();
    const { id } = loadKeys(file);
    chmodSync(file, 0o400);
    expect(loadKeys(file).id).toBe(id);
  });

  test("is the same one for processes that start at once, and whole from the moment that it can be seen", async () => {
    // Two create the file at the same instant; the third reads it as soon as it exists.
    const racers = ["maker", "maker", "watcher"].map((role) =>
      startNode(
        `
        import { existsSync } from "node:fs";
        import { loadKeys } from "./src/keys.ts";
        const [, role] = process.argv;
        print("ready");
        for (let line = await nextLine(); line; line = await nextLine()) {
          const { file, at } = JSON.parse(line);
          while (role === "watcher" ? !existsSync(file) : performance.timeOrigin + performance.now() < at);
          try { print(loadKeys(file).id); } catch (error) { print(error.message); }
        }`,
        role,
      ),
    );
    await Promise.all(racers.map((racer) => racer.next()));
    for (let round = 0; round < 100; round++) {
      const folder = temporaryFolder();
      const file = join(folder, "key.json");
      const at = performance.timeOrigin + performance.now() + 2;
      for (const racer of racers) racer.send(JSON.stringify({ file, at }));
      const ids = await Promise.all(racers.map((racer) => racer.next()));
      expect(ids).toEqual(racers.map(() => loadKeys(file).id));
      expect(readdirSync(folder)).toEqual(["key.json"]);
    }
  });

  const SECRET = Buffer.alloc(32, 0x5a).toString("base64");
  test.each([
    ["is empty", ""],
    ["is no JSON", `{"version": 1, "secret": "${SECRET}`],
    ["is the bare secret", SECRET],
    ["has no secret", `{"version": 1, "key": "${SECRET}"}`],
    ["has a secret that is no text", `{"version": 1, "secret": ["${SECRET}"]}`],
    ["has a secret that is too short", `{"version": 1, "secret": "${SECRET.slice(0, 40)}"}`],
    ["has a secret that is too long", `{"version": 1, "secret": "${SECRET.slice(0, 40)}${SECRET}"}`],
    [
      "has a secret with a character changed to one of no meaning",
      `{"secret": "${SECRET.replace("W", "*")}"}`,
    ],
    ["is null", "null"],
    ["has an empty list of secrets", '{"version": 2, "secrets": []}'],
    ["has a good secret and a bad one", `{"version": 2, "secrets": ["${SECRET}", "${SECRET.slice(0, 40)}"]}`],
  ])("is refused, named and not quoted when it %s", (_, content) => {
    const file = newFile();
    writeFileSync(file, content);
    let thrown: { message?: string; stack?: string; cause?: unknown } = {};
    try {
      loadKeys(file);
    } catch (error) {
      thrown = error as Error;
    }
    expect(thrown.message).toContain(`the key file ${file}`);
    expect(thrown.stack).not.toContain(SECRET.slice(0, 6));
    expect(thrown.cause).toBeUndefined();
    expect(readFileSync(file, "utf8")).toBe(content);
  });

  test("is refused when it is a folder", () => {
    const file = newFile();
    mkdirSync(file);
    expect(() => loadKeys(file)).toThrow(`the key file ${file} cannot be read`);
  });

  test("is not made where there is no folder for it", () => {
    const file = join(temporaryFolder(), "absent", "key.json");
    expect(() => loadKeys(file)).toThrow("absent");
    expect(existsSync(join(file, ".."))).toBe(false);
  });
});

describe("a secret that is added", () => {
  test("goes before the others, which stay, in a file for its owner alone", () => {
    const file = newFile();
    const [first] = readKeyFile(file);
    const added = addSecret(file);
    expect(added.map((secret) => secret.length)).toEqual([32, 32]);
    expect(added[1]).toEqual(first);
    expect(added[0]).not.toEqual(first);
    expect(addSecret(file).slice(1)).toEqual(added);
    expect(readKeyFile(file).slice(1)).toEqual(added);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(file, ".."))).toEqual(["key.json"]);
  });

  test("comes to a file of the first release, whose one secret stays", () => {
    const file = newFile();
    const secret = Buffer.alloc(32, 0x5a);
    writeFileSync(file, JSON.stringify({ version: 1, secret: secret.toString("base64") }));
    expect(readKeyFile(file)).toEqual([secret]);
    expect(addSecret(file)[1]).toEqual(secret);
    expect(loadKeys(file).ids[1]).toBe(keysFrom(secret).id);
  });

  test("goes into the file that a link leads to, and the link stays one", () => {
    const file = newFile();
    const secrets = readKeyFile(file);
    const link = join(temporaryFolder(), "link.json");
    symlinkSync(file, link);
    expect(addSecret(link).slice(1)).toEqual(secrets);
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect([realpathSync(link), readKeyFile(file).length]).toEqual([realpathSync(file), 2]);
  });

  test("is not added to a file that cannot be read, which stays as it is", () => {
    const file = newFile();
    writeFileSync(file, "{}");
    expect(() => addSecret(file)).toThrow(`the key file ${file}`);
    expect(readFileSync(file, "utf8")).toBe("{}");
    expect(readdirSync(join(file, ".."))).toEqual(["key.json"]);
  });

  test("is seen with all the former ones or not at all by a process that reads meanwhile", async () => {
    const file = newFile();
    const [first] = readKeyFile(file);
    const reader = startNode(
      `
      import { readKeyFile } from "./src/key-file.ts";
      const [, file] = process.argv;
      print("ready");
      let counts = new Set(), last = new Set(), stopped = false;
      nextLine().then(() => { stopped = true; });
      while (!stopped) {
        const secrets = readKeyFile(file);
        counts.add(secrets.length);
        last.add(secrets.at(-1).toString("hex"));
        await new Promise((next) => setImmediate(next));
      }
      print({ counts: [...counts], last: [...last] });`,
      file,
    );
    await reader.next();
    for (let round = 0; round < 100; round++) addSecret(file);
    reader.send("stop");
    const { counts, last } = (await reader.next()) as { counts: number[]; last: string[] };
    expect(last).toEqual([first?.toString("hex")]);
    expect(counts).toEqual(counts.toSorted((a, b) => a - b));
    expect(Math.max(...counts)).toBeLessThanOrEqual(101);
  });
});

import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { openLogFile } from "./log-file.ts";

let folder: string;
let path: string;
let failures: unknown[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "chartroom-log-"));
  path = join(folder, "server.log");
  failures = [];
});
afterEach(() => rmSync(folder, { recursive: true }));

const open = (maxBytes: number, files = 3) =>
  openLogFile({ path, maxBytes, files, onFailure: (error) => void failures.push(error) });
const files = () => readdirSync(folder).sort();
const read = (number = 0) => readFileSync(number === 0 ? path : `${path}.${number}`, "utf8");

describe("a log file", () => {
  test("takes what fits, at n - 1, n and n + 1 bytes", () => {
    const file = open(8);
    file.write("abc\n");
    file.write("de\n");
    expect(files()).toEqual(["server.log"]);
    file.write("\n");
    expect([files(), read()]).toEqual([["server.log"], "abc\nde\n\n"]);
    file.write("\n");
    expect([files(), read(), read(1)]).toEqual([["server.log", "server.log.1"], "\n", "abc\nde\n\n"]);
  });

  test("keeps so many files, and removes the oldest", () => {
    const file = open(4, 3);
    for (const line of ["one\n", "two\n", "3rd\n", "4th\n", "5th\n"]) file.write(line);
    expect([files(), read(), read(1), read(2)]).toEqual([
      ["server.log", "server.log.1", "server.log.2"],
      ...["5th\n", "4th\n", "3rd\n"],
    ]);
    const alone = open(4, 1);
    alone.write("6th\n");
    expect(read()).toBe("6th\n");
  });

  test("divides many lines between files, and no line", () => {
    const file = open(10, 100);
    const lines = Array.from({ length: 40 }, (_, index) => `${"x".repeat(index % 14)}${index}\n`);
    file.write(lines.slice(0, 30).join(""));
    file.write(lines.slice(30).join(""));
    const all = files().map((name) => readFileSync(join(folder, name), "utf8"));
    // Lines that exceed the maximum size of a file have a file of their own.
    for (const text of all) expect(text.length <= 10 || text.indexOf("\n") === text.length - 1).toBe(true);
    const [present = "", ...earlier] = [
      read(),
      ...Array.from({ length: all.length - 1 }, (_, n) => read(n + 1)),
    ];
    expect([...earlier.reverse(), present].join("")).toBe(lines.join(""));
    expect(failures).toEqual([]);
  });

  test("is gone on with after a restart, and only its owner reads it", () => {
    open(8).write("before\n");
    open(8).write("after\n");
    expect([read(1), read()]).toEqual(["before\n", "after\n"]);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test("is opened again once another program has moved it", () => {
    const file = open(100);
    file.write("one\n");
    renameSync(path, `${path}-moved`);
    file.write("two\n");
    file.reopen();
    file.write("three\n");
    expect([readFileSync(`${path}-moved`, "utf8"), read()]).toEqual(["one\ntwo\n", "three\n"]);
  });

  test("that cannot be exchanged is written on, and the caller that asked learns it", () => {
    const file = open(4, 2);
    file.write("one\n");
    rmSync(folder, { recursive: true });
    file.write("two\n");
    file.reopen();
    expect(failures.length).toBeGreaterThan(0);
    expect(existsSync(path)).toBe(false);
    folder = mkdtempSync(join(tmpdir(), "chartroom-log-"));
  });

  test("that was moved and cannot be opened again is written on, and no older one goes", () => {
    const file = open(4, 3);
    for (const line of ["one\n", "two\n"]) file.write(line);
    // A dangling link: the path has a name, but no file can be opened.
    renameSync(path, `${path}.moved`);
    symlinkSync(join(folder, "absent", "server.log"), path);
    for (const line of ["3rd\n", "4th\n", "5th\n"]) file.write(line);
    expect(failures.length).toBeGreaterThan(0);
    expect([read(1), readFileSync(`${path}.moved`, "utf8")]).toEqual(["one\n", "two\n3rd\n4th\n5th\n"]);
    rmSync(path);
    file.write("6th\n");
    expect([read(), read(1)]).toEqual(["6th\n", "one\n"]);
  });

  test.each(["/dev/null", "/dev/full"])("is none at %s, whose name it would give away", (device) => {
    expect(() => openLogFile({ path: device, maxBytes: 4, files: 3, onFailure() {} })).toThrow(
      "no regular file",
    );
  });

  test("has every line of a process that is killed, at whatever size it was", async () => {
    const program = `
      import { openLogFile } from "./src/log-file.ts";
      import { createLog } from "./src/log.ts";
      const file = openLogFile({ path: process.argv[1], maxBytes: 2_000, files: 1_000, onFailure() {} });
      const log = createLog("info", file.write);
      for (let index = 0; ; index++) {
        log.info({ index, request: { headers: { authorization: "made-up-credential" } } }, "said");
        await new Promise((resolve) => setImmediate(resolve));
        if (index % 50 === 49) process.stdout.write(index + "\\n");
      }`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", program, path], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let said = "";
    for await (const chunk of child.stdout) {
      said += chunk;
      if (said.split("\n").length > 3) break;
    }
    child.kill("SIGKILL");
    await once(child, "exit");
    const count = Number(said.trim().split("\n").at(-1)) + 1;
    const numbers = files()
      .map((name) => Number(name.slice("server.log.".length) || 0))
      .sort((one, other) => other - one);
    const texts = numbers.map(read);
    const lines = texts.flatMap((text) => text.split("\n").filter((line) => line !== ""));
    expect(numbers.length).toBeGreaterThan(2);
    expect(lines.length).toBeGreaterThanOrEqual(count);
    expect(lines.map((line) => JSON.parse(line).index)).toEqual(lines.map((_, index) => index));
    expect(texts.join("")).not.toContain("made-up-credential");
  });
});

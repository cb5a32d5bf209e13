import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { onOwnDisk, testWithOwnDisk } from "../harness/own-disk.ts";
import { runProgram, terminalEnvironment } from "../harness/program.ts";
import { runCommand, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";

let access: Record<string, string>;
let folder: string;
beforeAll(async () => {
  const server = await startHostedServer();
  folder = temporaryFolder();
  access = { XDG_CONFIG_HOME: folder, CHARTROOM_SERVER: server.url, CHARTROOM_TOKEN: server.token };
  writeFileSync(join(folder, "file"), "");
});
afterAll(stopAll);

/** Runs a program to its end: one that goes on for ever is killed, and has no code. */
const chartroom = (...args: readonly string[]) =>
  runProgram(process.execPath, ["bin/chartroom.js", ...args], {
    env: { ...terminalEnvironment(), ...access },
  });
const refused = (sentence: string) => ({ code: 1, stdout: "", stderr: `chartroom: ${sentence}\n` });

describe("an export", () => {
  test("into a folder that cannot be says so, and ends", async () => {
    const problems = {
      "/proc/none": "the system allows no folder there",
      "/dev/full": "it, or a part of its path, is a file",
      [join(folder, "file")]: "it, or a part of its path, is a file",
      [join(folder, "file", "below")]: "it, or a part of its path, is a file",
    };
    for (const [place, problem] of Object.entries(problems))
      expect(await chartroom("export", place)).toEqual(
        refused(`the folder ${place} cannot be used: ${problem}`),
      );
    expect(await chartroom("export", "")).toEqual(
      refused("the folder has no name: name one, or none for standard output"),
    );
  });

  test("makes the folder and its parents", async () => {
    const place = join(folder, "new", "below");
    expect(await chartroom("export", place)).toMatchObject({ code: 0, stderr: "" });
    expect(readdirSync(place)).toContain("policies.yaml");
  });

  test("into a folder that has one of its files leaves no other there", async () => {
    const place = join(folder, "half");
    mkdirSync(place);
    writeFileSync(join(place, "policies.yaml"), "mine");
    expect(await chartroom("export", place)).toEqual(
      refused(`${place} cannot be written: there are files already: name another folder`),
    );
    expect(readdirSync(place)).toEqual(["policies.yaml"]);
  });

  testWithOwnDisk("onto a disk that is full after the first file leaves nothing", async () => {
    const disk = temporaryFolder();
    const [program = "", ...mount] = onOwnDisk(disk, "size=4k");
    const script = `'${process.execPath}' bin/chartroom.js export "$0/a/b"; echo "code $?"; ls -A "$0"`;
    const { stdout, stderr } = await runProgram(program, [...mount, "sh", "-c", script, disk], {
      env: { ...terminalEnvironment(), ...access },
    });
    expect([stdout, stderr]).toEqual([
      "code 1\n",
      `chartroom: ${join(disk, "a/b")} cannot be written: the disk is full\n`,
    ]);
  });
});

describe("a file without an end", () => {
  test("is not read", async () => {
    const sentence = "/dev/zero cannot be read: it is no file";
    expect(await chartroom("apply", "-f", "/dev/zero")).toEqual(refused(sentence));
    expect(await chartroom("project", "import", "/dev/zero")).toEqual(refused(sentence));
    const run = "0190d4a0-0000-7000-8000-000000000000";
    expect(await chartroom("run", "review", run, "--from", "/dev/zero")).toEqual(refused(sentence));
  });

  test("is told from a pipe, which is read", async () => {
    const script = `printf '{"kind": "Folder", "owner": "main"}' | '${process.execPath}' bin/chartroom.js plan -f /dev/stdin`;
    expect(await runProgram("sh", ["-c", script], { env: { ...terminalEnvironment(), ...access } })).toEqual({
      code: 0,
      stdout: "no change; 0 unchanged\n",
      stderr: expect.any(String),
    });
  });
});

test("credentials and backups in a folder that cannot be are refused in words", async () => {
  const login = await runCommand(
    ["login"],
    { ...access, XDG_CONFIG_HOME: "/proc/none" },
    access.CHARTROOM_TOKEN,
  );
  const problem = "the system allows no folder there";
  expect(login).toEqual(refused(`the folder /proc/none/chartroom cannot be used: ${problem}`));
  const server = await startHostedServer();
  const backup = await runCommand(["backup", "/proc/none", "--data-dir", server.dataDir], access);
  expect(backup).toEqual(refused("/proc/none cannot be written: the system allows no file there"));
  expect(existsSync("/proc/none")).toBe(false);
});

describe("standard output", () => {
  test("on a full disk is an error in words", async () => {
    const script = `'${process.execPath}' bin/chartroom.js run list > /dev/full`;
    expect(await runProgram("sh", ["-c", script], { env: { ...terminalEnvironment(), ...access } })).toEqual(
      refused("standard output cannot be written: the disk is full"),
    );
  });

  test("that its reader has closed ends a command without a word", async () => {
    const script = `read go && exec '${process.execPath}' bin/chartroom.js run list`;
    const child = spawn("sh", ["-c", script], {
      env: { ...terminalEnvironment(), ...access },
      stdio: ["pipe", "pipe", "pipe"],
    });
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    child.stdout.destroy();
    await once(child.stdout, "close");
    child.stdin.end("go\n");
    const [code] = await once(child, "close");
    expect([code, stderr]).toEqual([141, ""]);
  });
});

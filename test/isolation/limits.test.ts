import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { withDiskLimits } from "../../src/runner/isolation/disk-watch.ts";
import { runProgram } from "../harness/program.ts";
import { realPrograms } from "../harness/runner-git.ts";
import { temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";
import { bubblewrap, enter, isRoot, type Place, removeAll, WORK_USER } from "./sandboxes.ts";

let place: Place;
beforeAll(async () => {
  place = await enter(await bubblewrap());
});
afterAll(removeAll);

/** The processes of this machine with a word among their arguments: their ids, and the ids of their users. */
function processesWith(word: string) {
  return readdirSync("/proc").flatMap((id) => {
    try {
      const words = readFileSync(`/proc/${id}/cmdline`, "utf8").split("\0");
      const users = /^Uid:\s*(.*)$/m.exec(readFileSync(`/proc/${id}/status`, "utf8"))?.[1]?.split("\t");
      const isInside = /^NSpid:\t\d+\t\d+/m.test(readFileSync(`/proc/${id}/status`, "utf8"));
      return words.includes(word) ? [{ id, users, isInside }] : [];
    } catch {
      return [];
    }
  });
}

/** Arguments of `sleep` that no other process has. */
const SECONDS = `${4711 + process.pid}.${Date.now() % 1000}`;

const words = { folder: "", environment: { PATH: realPrograms.path } };

test("everything that a command leaves behind ends with the first process of its namespace, sessions of their own too", async () => {
  const { exit } = await place.sh(
    `setsid sh -c 'setsid sleep ${SECONDS}1 & sleep ${SECONDS}1' & until pgrep -f ${SECONDS}1 | sed 1d | grep -q .; do sleep 0.01; done; exit 3`,
  );
  expect(exit).toBe(3);
  expect(processesWith(`${SECONDS}1`)).toEqual([]);
});

test("a command that is stopped is asked first, and then ended with everything in its sandbox", async () => {
  for (const [script, expected] of [
    [
      `trap 'echo bye; exit 4' TERM; echo up; sleep ${SECONDS}2 & wait`,
      { exit: 4, timedOut: false, stopped: true },
    ],
    [`setsid sleep ${SECONDS}2 & echo up; exec sleep ${SECONDS}2`, { exit: 143, stopped: true }],
  ] as const) {
    const stop = new AbortController();
    const result = await place.run({
      ...words,
      program: "sh",
      args: ["-c", script],
      folder: place.workspace.tree,
      signal: stop.signal,
      onOutput: () => stop.abort(),
    });
    expect(result).toMatchObject(expected);
    expect(processesWith(`${SECONDS}2`)).toEqual([]);
  }
});

test("a command ends when its runner is killed, since the first process dies with its parent", async () => {
  const folder = temporaryFolder();
  const script = `
    import { bubblewrap, enter } from ${JSON.stringify(join(import.meta.dirname, "sandboxes.ts"))};
    const place = await enter(await bubblewrap());
    await place.sh("setsid sleep ${SECONDS}3 & sleep ${SECONDS}3");`;
  const file = join(folder, "runner.ts");
  writeFileSync(file, script);
  const running = runProgram("bash", ["-c", `${process.execPath} ${file} & echo $! > ${folder}/id; wait`]);
  await until(
    () => processesWith(`${SECONDS}3`).filter(({ isInside }) => isInside),
    (found) => found.length >= 2,
  );
  process.kill(Number(readFileSync(join(folder, "id"), "utf8")), "SIGKILL");
  await running;
  expect(
    await until(
      () => processesWith(`${SECONDS}3`),
      (found) => found.length === 0,
    ),
  ).toEqual([]);
});

test("no process of the work is root's, or the runner's user's where that is root", async () => {
  const stop = new AbortController();
  const running = place.run({
    ...words,
    program: "sleep",
    args: [`${SECONDS}4`],
    folder: place.workspace.tree,
    signal: stop.signal,
  });
  const inside = await until(
    () => processesWith(`${SECONDS}4`).filter((each) => each.isInside),
    (found) => found.length > 1,
  );
  const user = String(WORK_USER ?? process.getuid?.());
  expect(user).not.toBe("0");
  for (const { users } of inside) expect(users).toEqual([user, user, user, user]);
  stop.abort();
  await running;
});

test("files of the workspace are the work's", async () => {
  expect(await place.sh("id -u; stat -c %u . ~ /tmp; touch a; stat -c %u a")).toEqual({
    exit: 0,
    text: `${WORK_USER ?? process.getuid?.()}\n`.repeat(5),
  });
});

test("a file that is set to run as its owner runs as the work (nosuid, no new privileges)", async () => {
  const file = join(place.workspace.tree, "id");
  copyFileSync("/usr/bin/id", file);
  chmodSync(file, 0o4755);
  const { text } = await place.sh("./id -u");
  expect(text).toBe(`${WORK_USER ?? process.getuid?.()}\n`);
});

test("a program that a variable names is loaded by nothing outside of the sandbox", async () => {
  const folder = mkdtempSync(join(tmpdir(), "chartroom-test-preload-"));
  chmodSync(folder, 0o777);
  const source = `__attribute__((constructor)) static void begin(void) { fopen("${folder}/outside", "w"); fopen("${place.workspace.tree}/inside", "w"); }`;
  const file = join(place.workspace.tree, "preload");
  writeFileSync(`${file}.c`, `#include <stdio.h>\n${source}\n`);
  expect(await runProgram("cc", ["-shared", "-fPIC", "-o", `${file}.so`, `${file}.c`])).toMatchObject({
    code: 0,
  });
  await place.sh("true", { LD_PRELOAD: `${file}.so`, BASH_ENV: file, ENV: file });
  expect([existsSync(join(folder, "outside")), existsSync(join(place.workspace.tree, "inside"))]).toEqual([
    false,
    true,
  ]);
});

test("no descriptor of the runner's start reaches the work (they are closed)", async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "key"), "hidden\n");
  const script = `
    import { bare, bubblewrap, enter, removeAll } from ${JSON.stringify(join(import.meta.dirname, "sandboxes.ts"))};
    const seen = async (isolation) => (await (await enter(isolation)).sh("cat /proc/self/fd/77")).text;
    console.log(JSON.stringify([await seen(bare), await seen(await bubblewrap())]));
    removeAll();`;
  writeFileSync(join(folder, "runner.ts"), script);
  const start = `exec ${process.execPath} ${folder}/runner.ts 77< ${folder}/key`;
  const { stdout } = await runProgram("bash", ["-c", start]);
  const [open, kept] = JSON.parse(stdout) as [string, string];
  // The shell itself gives them on where nothing closes them.
  expect(open).toContain("hidden");
  expect(kept).not.toContain("hidden");
});

test.each([
  [
    "files",
    "dd if=/dev/zero of=big bs=1M count=64 status=none; sleep 60",
    { diskBytes: 2 ** 24 },
    "disk_limit_exceeded",
  ],
  [
    "/tmp",
    "dd if=/dev/zero of=/tmp/big bs=1M count=64 status=none; sleep 60",
    { tmpBytes: 2 ** 24 },
    "disk_limit_exceeded",
  ],
  ["the disk", "sleep 60", { freeDiskBytes: 2 ** 60 }, "disk_full"],
])(
  "work that fills %s is ended by the watch of the disk, with the reason",
  async (_, script, limits, reason) => {
    const { workspace, sh } = await enter(await bubblewrap({ limits }));
    expect(workspace.tree).not.toBe("");
    await expect(sh(script)).rejects.toMatchObject({ reason });
  },
);

test("the size of files is a limit that may be reached and not passed", async () => {
  const { workspace } = place;
  const tmp = temporaryFolder();
  writeFileSync(join(tmp, "file"), Buffer.alloc(2 ** 20));
  const used = Number((await runProgram("du", ["-s", "-B1", tmp])).stdout.split("\t")[0]);
  const run = (tmpBytes: number, seconds: string) =>
    withDiskLimits(realPrograms.run, {
      programs: realPrograms,
      limits: { diskBytes: 2 ** 60, tmpBytes, freeDiskBytes: 0 },
      tmp,
      folders: [workspace.tree],
      intervalMs: 20,
    })({ ...words, program: "sleep", args: [seconds], folder: "/" });
  expect(await run(used, "3")).toMatchObject({ exit: 0 });
  // Far longer than the machine may stall before it looks.
  await expect(run(used - 1, "60")).rejects.toMatchObject({ reason: "disk_limit_exceeded" });
});

test("a program that is not there, or not seen, is not started", async () => {
  for (const program of ["no-such-program", join(import.meta.dirname, "../../bin/chartroom.js"), "./none"]) {
    const starting = place.run({ ...words, program, args: [], folder: place.workspace.tree });
    await expect(starting).rejects.toMatchObject({ reason: "command_not_started" });
  }
  const starting = place.run({
    ...words,
    program: "true",
    args: [],
    folder: join(place.workspace.tree, "none"),
  });
  await expect(starting).rejects.toMatchObject({ reason: "command_not_started" });
});

test("a workspace that was root's is given to the work", async () => {
  if (!isRoot) return;
  const isolation = await bubblewrap();
  const { workspace } = await enter(isolation);
  writeFileSync(join(workspace.tree, "of-root"), "1\n", { mode: 0o600 });
  await isolation.chown([workspace.tree]);
  const run = await isolation.enter(workspace, []);
  const result = await run({ ...words, program: "rm", args: ["of-root"], folder: workspace.tree });
  expect(result.exit).toBe(0);
});

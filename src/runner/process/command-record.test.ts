import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, expect, test } from "@jest/globals";
import { endNodes, type NodeProcess, startNode } from "../../../test/harness/node-process.ts";
import { createCommandRunner } from "./command.ts";
import { endOrphanedGroups, openCommandRecord } from "./command-record.ts";
import { readProcessStat, type SignalGroup } from "./process-group.ts";

const folders: string[] = [];
afterEach(endNodes);
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "chartroom-record-"));
  folders.push(folder);
  return folder;
}

const signalGroup: SignalGroup = (groupId, signal) => process.kill(-groupId, signal);

/** A runner in a process of its own, in the middle of a command; with the id of the command's process. */
async function busyRunner(
  folder: string,
): Promise<{ readonly runner: NodeProcess; readonly leader: number }> {
  const runner = startNode(
    `
    import { createCommandRunner } from "./src/runner/process/command.ts";
    import { openCommandRecord } from "./src/runner/process/command-record.ts";
    const [, folder] = process.argv;
    const record = await openCommandRecord(folder);
    const run = createCommandRunner((group, signal) => process.kill(-group, signal), {
      record: { add: async (id) => { await record.add(id); print(id); }, remove: record.remove },
    });
    run({ program: "sh", args: ["-c", "sleep 60; true"], folder, environment: { PATH: process.env.PATH } });
    `,
    folder,
  );
  return { runner, leader: Number(await runner.next()) };
}

const isRunning = async (id: number) => {
  const stat = await readProcessStat(String(id));
  return stat !== undefined && stat.state !== "Z";
};

test("a command that outlives its killed runner is ended by the next one", async () => {
  const folder = newFolder();
  const { runner, leader } = await busyRunner(folder);
  await runner.kill();
  expect(await isRunning(leader)).toBe(true);
  expect(await endOrphanedGroups(folder, signalGroup)).toBe(1);
  expect(await isRunning(leader)).toBe(false);
  expect(readdirSync(folder)).toEqual([]);
});

test("a command of a runner that lives, over the same folder, stays", async () => {
  const folder = newFolder();
  const { leader } = await busyRunner(folder);
  expect(await endOrphanedGroups(folder, signalGroup)).toBe(0);
  expect(await isRunning(leader)).toBe(true);
  expect(readdirSync(folder)).toEqual([String(leader)]);
  process.kill(-leader, "SIGKILL");
});

test("a process that got the number of an ended one is left alone, and so is everything after a boot", async () => {
  const folder = newFolder();
  const { runner, leader } = await busyRunner(folder);
  await runner.kill();
  const boot = { bootId: "another" };
  const stat = await readProcessStat(String(leader));
  const gone = { id: 999_999_999, startedAtTicks: "1" };
  const real = { id: leader, startedAtTicks: stat?.startedAtTicks };
  rmSync(join(folder, String(leader)));
  writeFileSync(join(folder, "1"), JSON.stringify({ ...boot, runner: gone, leader: real }));
  const bootId = readFileSync("/proc/sys/kernel/random/boot_id", "utf8");
  const younger = { ...real, startedAtTicks: "1" };
  writeFileSync(join(folder, "2"), JSON.stringify({ bootId, runner: gone, leader: younger }));
  writeFileSync(join(folder, "3"), '{"bootId"');
  expect(await endOrphanedGroups(folder, signalGroup)).toBe(0);
  expect(await isRunning(leader)).toBe(true);
  expect(readdirSync(folder)).toEqual([]);
  process.kill(-leader, "SIGKILL");
});

test("an entry exists while its command runs and no longer", async () => {
  const folder = newFolder();
  const run = createCommandRunner(signalGroup, { record: await openCommandRecord(folder) });
  const result = await run({
    program: "sh",
    args: ["-c", 'until [ -e "$0/$$" ]; do sleep 0.01; done', folder],
    folder,
    environment: { PATH: process.env.PATH ?? "" },
    timeoutMs: 10_000,
  });
  expect(result.exit).toBe(0);
  expect(readdirSync(folder)).toEqual([]);
  expect(await endOrphanedGroups(join(folder, "absent"), signalGroup)).toBe(0);
});

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, expect, test } from "@jest/globals";
import { endNodes, type NodeProcess, startNode } from "../../../test/harness/node-process.ts";
import { createCommandRunner } from "./command.ts";
import { endOrphanedGroups, openCommandRecord, readRecords } from "./command-record.ts";
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

/** Starts a runner in its own process, in the middle of a command; returns the id of the command's process. */
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
      record: { add: (id) => { record.add(id); print(id); }, remove: record.remove },
    });
    run({ program: "sh", args: ["-c", "sleep 60; true"], folder, environment: { PATH: process.env.PATH } });
    `,
    folder,
  );
  return { runner, leader: Number(await runner.next()) };
}

const groupsIn = async (folder: string) => (await readRecords(folder)).flatMap(({ groupIds }) => groupIds);

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
  expect(await groupsIn(folder)).toEqual([leader]);
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
  for (const name of readdirSync(folder)) rmSync(join(folder, name));
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

test("a group is recorded while its command runs and no longer", async () => {
  const folder = newFolder();
  const run = createCommandRunner(signalGroup, { record: await openCommandRecord(folder) });
  const result = await run({
    program: "sh",
    args: ["-c", 'until grep -q "^$$ " "$0"/*; do sleep 0.01; done', folder],
    folder,
    environment: { PATH: process.env.PATH ?? "" },
    timeoutMs: 10_000,
  });
  expect(result.exit).toBe(0);
  expect(await groupsIn(folder)).toEqual([]);
  expect(await endOrphanedGroups(join(folder, "absent"), signalGroup)).toBe(0);
});

test("what an earlier release recorded, a file for each group, is ended as well", async () => {
  const folder = newFolder();
  const { runner, leader } = await busyRunner(folder);
  await runner.kill();
  for (const name of readdirSync(folder)) rmSync(join(folder, name));
  const bootId = readFileSync("/proc/sys/kernel/random/boot_id", "utf8");
  const stat = await readProcessStat(String(leader));
  const real = { id: leader, startedAtTicks: stat?.startedAtTicks };
  const gone = { id: 999_999_999, startedAtTicks: "1" };
  writeFileSync(join(folder, String(leader)), JSON.stringify({ bootId, runner: gone, leader: real }));
  expect(await endOrphanedGroups(folder, signalGroup)).toBe(1);
  expect(await isRunning(leader)).toBe(false);
  expect(readdirSync(folder)).toEqual([]);
});

test("a file that has grown keeps the groups that run, and grows no further", async () => {
  const folder = newFolder();
  const { leader } = await busyRunner(newFolder());
  const record = await openCommandRecord(folder);
  record.add(leader);
  const sizeOf = () => readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  for (let count = 0; count < 10_000; count++) {
    record.add(process.pid);
    record.remove(process.pid);
  }
  expect(sizeOf()).toBeLessThan(66_000);
  expect(await groupsIn(folder)).toContain(leader);
  process.kill(-leader, "SIGKILL");
});

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "@jest/globals";
import { endGroup, readProcessStat, type SignalGroup } from "./process-group.ts";

const signalGroup: SignalGroup = (groupId, signal) => process.kill(-groupId, signal);

test("a group whose dead nobody asks after is gone all the same", async () => {
  // The shell becomes a program that never reaps its child, which is a group of its own.
  const parent = spawn("sh", ["-c", "setsid sh -c 'echo $$' & exec sleep 60"], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [line] = await once(createInterface({ input: parent.stdout }), "line");
  while ((await readProcessStat(line))?.state !== "Z") await delay(5);
  expect(() => signalGroup(Number(line), 0)).not.toThrow();
  const started = performance.now();
  await endGroup(signalGroup, Number(line), 40_000);
  expect(performance.now() - started).toBeLessThan(20_000);
  parent.kill("SIGKILL");
});

test("a group that is not there is gone", async () => {
  const child = spawn("true", { detached: true });
  await once(child, "exit");
  await endGroup(signalGroup, child.pid ?? 0, 10_000);
  expect(await readProcessStat(String(child.pid))).toBeUndefined();
});

test("a process is read whatever its name is", async () => {
  const child = spawn("sh", ["-c", "printf ') Z 1 (' > /proc/$$/comm; echo; read _"], { detached: true });
  await once(child.stdout, "data");
  const stat = await readProcessStat(String(child.pid));
  expect(stat).toMatchObject({ id: child.pid, groupId: child.pid, state: expect.stringMatching(/^[RS]$/) });
  child.stdin.end("\n");
  await once(child, "exit");
});

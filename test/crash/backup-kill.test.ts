import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, mkdirSync, openSync, readdirSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, test } from "@jest/globals";
import { dataEnvironmentOf } from "../harness/data-config.ts";
import { ROOT, terminalEnvironment } from "../harness/program.ts";
import { startHostedCommand, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";

afterAll(stopAll);

const OLDER = "chartroom-20260101T000000.000Z.db";

test("a schedule that is killed leaves no copy that was not verified, and the next run removes what is left", async () => {
  const server = await startHostedServer();
  const folder = join(temporaryFolder(), "copies");
  mkdirSync(folder);
  writeFileSync(join(folder, OLDER), "a good one");
  const files = () => readdirSync(folder).filter((name) => !name.startsWith("backup.lock") && name !== OLDER);
  const args = ["backup", folder, "--schedule", "0 0 1 * *", "--data-dir", server.dataDir];

  // The copy is written and restored, and its keys are still looked at: reading them waits for a writer of the pipe.
  const pipe = join(temporaryFolder(), "key.json");
  execFileSync("mkfifo", [pipe]);
  const held = spawn(process.execPath, ["bin/chartroom.js", ...args, "--key-file", pipe], {
    cwd: ROOT,
    env: { ...terminalEnvironment(), ...dataEnvironmentOf(server.dataDir) },
    stdio: "ignore",
  });
  const ended = once(held, "exit");
  const writer = open(pipe, "w");
  const first = await Promise.race([writer.then(() => "held"), ended]);
  held.kill("SIGKILL");
  await ended;
  // Where nothing has read it, opening it would wait for ever.
  closeSync(openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK));
  await (await writer).close();
  expect([first, held.signalCode]).toEqual(["held", "SIGKILL"]);
  expect(files().sort()).toEqual([expect.stringMatching(/^chartroom-\S+\.unchecked$/), "checking"]);
  expect(readdirSync(join(folder, "checking"))).toContain("chartroom.db");

  const next = await startHostedCommand(args);
  const made = await until(
    () => next.log().find(({ msg }) => msg === "a good copy of the data was made"),
    (line) => line !== undefined,
  );
  await next.stop();
  // What was left was not taken for a copy: one was made at once, and the older one stays next to it.
  expect(made).toMatchObject({ removed: [] });
  expect(files().map((name) => join(folder, name))).toEqual([made?.file]);
  expect(readdirSync(folder)).toContain(OLDER);
});

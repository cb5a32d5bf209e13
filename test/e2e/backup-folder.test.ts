import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "@jest/globals";
import { tampering } from "../harness/raw-data.ts";
import {
  runHostedCommand,
  startHostedCommand,
  startHostedServer,
  stopAll,
  temporaryFolder,
} from "../harness/server.ts";
import { until } from "../harness/until.ts";

afterAll(stopAll);

describe("chartroom backup into a folder", () => {
  const isCopy = (name: string) => /^chartroom-[\dT.]+Z\.db$/.test(name);

  test("keeps as many copies as configured, of which each was restored and verified", async () => {
    const server = await startHostedServer();
    const folder = join(temporaryFolder(), "copies");
    const data = ["--data-dir", server.dataDir];
    const copy = (...more: string[]) => runHostedCommand(["backup", folder, "--keep", "1", ...data, ...more]);
    const files = () => readdirSync(folder).filter((name) => name !== "backup.lock");
    const first = await copy();
    expect([first.stderr, first.stdout]).toEqual([
      "",
      expect.stringMatching(/^A good copy is in \S+\.db\.\n$/),
    ]);
    const [oldest = ""] = files();
    expect(statSync(join(folder, oldest)).mode & 0o777).toBe(0o600);
    // What a run leaves that was killed, and what is not its own.
    mkdirSync(join(folder, "checking"));
    for (const name of [
      "checking/chartroom.db",
      "chartroom-1.unchecked.draft-journal",
      "chartroom-1.unchecked",
    ])
      writeFileSync(join(folder, name), "half");
    writeFileSync(join(folder, "notes.failed"), "mine");
    expect((await copy()).stdout).toContain(`\n${oldest} is removed.\n`);
    expect(files().map((name) => isCopy(name) || name)).toEqual([true, "notes.failed"]);
    const before = files();

    // Neither of another's keys, nor where a row was changed behind the server, is a copy good; the older ones stay.
    const other = await startHostedServer();
    const foreign = await copy("--key-file", join(other.dataDir, "key.json"));
    expect([foreign.code, foreign.stderr]).toEqual([2, expect.stringContaining("it lacks the key")]);
    await server.stop();
    await tampering(server.dataDir, (raw) =>
      raw.run("update audit_log set actor_id = 'somebody' where organization_id is null and sequence = 1"),
    );
    const changed = await copy();
    expect([changed.code, changed.stderr]).toEqual([2, expect.stringContaining("breaks at row 1")]);
    const failed = files().filter((name) => !before.includes(name));
    // The copy that failed before has made room.
    expect(failed).toEqual([expect.stringMatching(/^chartroom-\S+\.db\.failed$/)]);
    expect(changed.stderr).toContain(`is kept as ${join(folder, failed[0] ?? "")}, and no older one goes`);
    expect(files()).toEqual(expect.arrayContaining(before));
  });

  test("by a schedule makes at once what is missing, says in its log when the next is due, and ends when asked to", async () => {
    const server = await startHostedServer();
    const folder = join(temporaryFolder(), "copies");
    const args = ["backup", folder, "--schedule", "0 0 29 2 *", "--data-dir", server.dataDir];
    const first = await startHostedCommand(args);
    const made = await until(
      () => first.log().find(({ msg }) => msg === "a good copy of the data was made"),
      (line) => line !== undefined,
    );
    expect(made).toMatchObject({ removed: [], next: expect.stringMatching(/^20\d\d-02-29T00:00:00\.000Z$/) });
    await first.stop();
    expect(readdirSync(folder).filter(isCopy)).toHaveLength(1);

    const second = await startHostedCommand([...args, "--keep", "1"]);
    expect(second.output).toContain(`the next one is due at ${made?.next}\n`);
    await second.stop();
    rmSync(join(server.dataDir, "key.json"));
    await expect(startHostedCommand(args)).rejects.toThrow("there is no key file");
    await expect(startHostedCommand(["backup", folder, "--schedule", "daily"])).rejects.toThrow(
      "five cron fields",
    );
  });

  test("that fails is tried again, and its log says how old the last good copy is", async () => {
    const server = await startHostedServer();
    const folder = temporaryFolder();
    writeFileSync(join(folder, "chartroom-20260101T000000.000Z.db"), "a good one");
    // Where its lock should be.
    mkdirSync(join(folder, "backup.lock"));
    const args = ["--schedule", "* * * * *", "--data-dir", server.dataDir];
    const schedule = await startHostedCommand(["backup", folder, ...args]);
    const failed = await until(
      () => schedule.log().find(({ level }) => level === "error"),
      (line) => line !== undefined,
    );
    expect(failed).toMatchObject({ lastGood: "2026-01-01T00:00:00.000Z", ageSeconds: expect.any(Number) });
    await schedule.stop();
  });

  test("takes no bound on age for a single file", async () => {
    const { code, stderr } = await runHostedCommand(["backup", "a", "--keep-days", "1"]);
    expect([code, stderr]).toEqual([1, "chartroom: --keep-days goes with --keep or --schedule\n"]);
  });
});

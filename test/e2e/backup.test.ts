import { copyFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "@jest/globals";
import Database from "better-sqlite3";
import { post, repository } from "../harness/call.ts";
import { runCommand, startServer, stopAll, type TestServer, temporaryFolder } from "../harness/server.ts";

afterAll(stopAll);

const CLIENTS = 8;

/** Rows of every table of a database file. */
function counts(file: string): Record<string, number> {
  const raw = new Database(file, { readonly: true });
  try {
    // The index of texts cannot be read as a whole; the tables in which the engine keeps it can.
    const tables = raw
      .prepare<[], string>("select name from pragma_table_list where schema = 'main' and type <> 'virtual'")
      .pluck()
      .all();
    return Object.fromEntries(
      tables.map((table) => [
        table,
        raw.prepare<[], number>(`select count(*) from "${table}"`).pluck().get() ?? -1,
      ]),
    );
  } finally {
    raw.close();
  }
}

/** How many projects have a text among what a search looks at. */
function containing(file: string, text: string): number {
  const raw = new Database(file, { readonly: true });
  try {
    const count = raw.prepare<[string], number>(
      "select count(*) from project where instr(search_text, ?) > 0",
    );
    return count.pluck().get(text) ?? -1;
  } finally {
    raw.close();
  }
}

/** Clients that create projects until they are stopped; how many were created. */
function load(server: TestServer) {
  let isRunning = true;
  let created = 0;
  const waiting = new Map<() => void, number>();
  const clients = Array.from({ length: CLIENTS }, async (_, client) => {
    while (isRunning) {
      const initializer = repository(`https://git.example.org/team/load-${client}-${created}.git`);
      const { status } = await post(server, "ProjectService/CreateProject", { initializer });
      expect(status).toBe(200);
      created += 1;
      for (const [resolve, count] of waiting) if (created >= count) resolve();
    }
  });
  return {
    until: (count: number) => new Promise<void>((resolve) => void waiting.set(resolve, count)),
    created: () => created,
    async stop() {
      isRunning = false;
      await Promise.all(clients);
    },
  };
}

describe("chartroom backup and restore", () => {
  test("under load give a folder that starts, with equal counts and a chain that verifies", async () => {
    const server = await startServer();
    const backup = join(temporaryFolder(), "chartroom.backup");
    const clients = load(server);
    await clients.until(200);
    const before = clients.created();
    const written = await runCommand(["backup", backup, "--data-dir", server.dataDir]);
    const after = clients.created();
    await clients.stop();
    expect([written.code, written.stderr]).toEqual([0, ""]);
    expect(written.stdout).toContain(`keep a copy of ${join(server.dataDir, "key.json")}`);
    // The load went on meanwhile, and what was answered before the backup began is in it.
    expect(after).toBeGreaterThan(before);
    const copied = counts(backup);
    expect(copied.project).toBeGreaterThanOrEqual(before);
    expect(copied.project).toBeLessThanOrEqual(after + CLIENTS);
    expect(statSync(backup).mode & 0o777).toBe(0o600);

    const folder = join(temporaryFolder(), "restored");
    const restored = await runCommand(["restore", backup, "--data-dir", folder]);
    expect([restored.code, restored.stderr]).toEqual([0, ""]);
    expect(restored.stdout).toContain(`Copy the key file of that time to ${join(folder, "key.json")}`);
    expect(readdirSync(folder)).toEqual(["chartroom.db"]);
    expect(counts(join(folder, "chartroom.db"))).toEqual(copied);
    copyFileSync(join(server.dataDir, "key.json"), join(folder, "key.json"));
    const verified = await runCommand(["audit", "verify", "--data-dir", folder]);
    expect([verified.code, verified.stdout.trimEnd().split("\n").at(-1)]).toEqual([0, "every chain holds"]);

    const next = await startServer({ dataDir: folder });
    const { body } = await post(
      next,
      "ProjectService/ListProjects",
      { pagination: { pageSize: 1 } },
      server.token,
    );
    expect(body.projects).toHaveLength(1);
    const search = { filter: { search: "OAD-5-" }, count: { include: true } };
    const found = await post(next, "ProjectService/ListProjects", search, server.token);
    expect(found.body.count.value).toBe(containing(backup, "oad-5-"));
    expect(counts(join(folder, "chartroom.db"))).toMatchObject({ project: copied.project });
    await Promise.all([next.stop(), server.stop()]);
  });

  test("overwrite nothing, and take nothing that is no whole backup", async () => {
    const server = await startServer();
    await server.stop();
    const folder = temporaryFolder();
    const backup = join(folder, "chartroom.backup");
    const backUp = () => runCommand(["backup", backup, "--data-dir", server.dataDir]);
    const restore = (file: string, to: string) => runCommand(["restore", file, "--data-dir", to]);
    expect((await backUp()).code).toBe(0);
    expect(
      readFileSync(backup).includes(readFileSync(join(server.dataDir, "key.json")).subarray(30, 60)),
    ).toBe(false);
    const again = await backUp();
    expect([again.code, again.stderr]).toEqual([
      1,
      `chartroom: ${backup} exists already: name a file that does not\n`,
    ]);
    const occupied = await restore(backup, server.dataDir);
    expect([occupied.code, occupied.stderr]).toEqual([
      1,
      `chartroom: the folder ${server.dataDir} is not empty: name one that is, or one that does not exist\n`,
    ]);
    const damaged = join(folder, "damaged");
    writeFileSync(damaged, readFileSync(backup).subarray(0, 20_000));
    const target = join(folder, "target");
    const refused = await restore(damaged, target);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining("is no backup, or it is damaged"),
    ]);
    expect(existsSync(target)).toBe(false);
    expect((await restore(join(folder, "absent"), target)).stderr).toBe(
      `chartroom: there is no file ${join(folder, "absent")}\n`,
    );
    expect(readdirSync(folder).toSorted()).toEqual(["chartroom.backup", "damaged"]);
  });

  test("need the keys of their time: another key file starts nothing", async () => {
    const server = await startServer();
    await server.stop();
    const backup = join(temporaryFolder(), "chartroom.backup");
    const folder = join(temporaryFolder(), "restored");
    await runCommand(["backup", backup, "--data-dir", server.dataDir]);
    await runCommand(["restore", backup, "--data-dir", folder]);
    await expect(startServer({ dataDir: folder })).rejects.toThrow("is not the one that the data in");
  });
});

import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import Database from "better-sqlite3";
import { rowProblems } from "../crash/rows.ts";
import { post } from "../harness/call.ts";
import { addOrganization } from "../harness/organization.ts";
import { runCommand, startServer, stopAll, type TestServer, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";
import { makeWorld } from "./world.ts";

/** Of the installation or of accounts, or of the engine's own. */
const SHARED =
  /^(account|audit_log|block_receipt|fact|installation|migration|project_search_\w+|sqlite_\w+|subscription)$/;

let first: TestServer;
let second: { readonly organizationId: string; readonly token: string };
/** Rows of each table before the second organization was made. */
let before: Record<string, number>;
let full: Record<string, number>;

beforeAll(async () => {
  first = await startServer();
  await makeWorld(first);
  before = counts(first.dataDir);
  second = await addOrganization(first, "Second");
  await makeWorld({ ...first, token: second.token });
  await first.stop();
  fill(first.dataDir, second.organizationId);
  full = counts(first.dataDir);
}, 120_000);
afterAll(stopAll);

function reading<T>(dataDir: string, read: (db: Database.Database) => T): T {
  const db = new Database(join(dataDir, "chartroom.db"), { readonly: true });
  try {
    return read(db);
  } finally {
    db.close();
  }
}

const tablesOf = (db: Database.Database): string[] =>
  db
    .prepare<[], string>("select name from pragma_table_list where schema = 'main' and type = 'table'")
    .pluck()
    .all();

function counts(dataDir: string): Record<string, number> {
  return reading(dataDir, (db) =>
    Object.fromEntries(
      tablesOf(db)
        .filter((table) => !SHARED.test(table))
        .map((table) => [
          table,
          db.prepare<[], number>(`select count(*) from [${table}]`).pluck().get() ?? -1,
        ]),
    ),
  );
}

/** Adds a row of an organization to each table that has none: many kinds of rows exist for a moment only. */
function fill(dataDir: string, organizationId: string): void {
  const now = counts(dataDir);
  const db = new Database(join(dataDir, "chartroom.db"));
  for (const table of Object.keys(before).filter((name) => now[name] === before[name])) {
    const row: Record<string, unknown> = {};
    const columns = db.prepare<[string], { name: string; type: string }>(
      "select name, type from pragma_table_info(?)",
    );
    for (const { name, type } of columns.all(table)) {
      row[name] = name === "organization_id" ? organizationId : { INTEGER: 1, REAL: 1, TEXT: "{}" }[type];
      row[name] ??= Buffer.from("x");
    }
    const keys = db.prepare<[string], { table: string; from: string; to: string }>(
      'select "table", "from", "to" from pragma_foreign_key_list(?)',
    );
    // The newest row is of the organization that was filled last.
    for (const { table: parent, from, to } of keys.all(table)) {
      row[from] = db.prepare(`select [${to}] from [${parent}] order by 1 desc limit 1`).pluck().get();
    }
    const names = Object.keys(row);
    db.prepare(`insert into [${table}] values (${names.map((name) => `@${name}`).join(", ")})`).run(row);
  }
  db.close();
}

/** Tables with a row that names an id in any of its columns. */
function tablesNaming(dataDir: string, id: string): string[] {
  const names = (row: unknown) =>
    Object.values(row as object).some((value) => typeof value === "string" && value.includes(id));
  return reading(dataDir, (db) =>
    tablesOf(db).filter((table) => db.prepare(`select * from [${table}]`).all().some(names)),
  );
}

/** A folder of its own with the data of both organizations. */
function copied(): string {
  const folder = temporaryFolder();
  for (const file of ["chartroom.db", "key.json"]) {
    copyFileSync(join(first.dataDir, file), join(folder, file));
  }
  return folder;
}

/** Writes to a copy, as a later release does. */
function within(dataDir: string, statements: string): void {
  const db = new Database(join(dataDir, "chartroom.db"));
  db.exec(statements);
  db.close();
}

function headOf(dataDir: string, id: string): { sequence: number; hash: string } {
  return reading(
    dataDir,
    (db) =>
      db
        .prepare("select sequence, lower(hex(chain_hash)) as hash from organization where id = ?")
        .get(id) as { sequence: number; hash: string },
  );
}

const command = (dataDir: string, ...rest: string[]) => [
  ...["organization", "remove", ...rest],
  ...["--data-dir", dataDir],
];
const remove = (dataDir: string, ...rest: string[]) => runCommand(command(dataDir, ...rest));
const verify = (dataDir: string) => runCommand(["audit", "verify", "--data-dir", dataDir]);
const removedLine = (head: { sequence: number; hash: string }) =>
  new RegExp(
    `^organization ${second.organizationId}: removed at \\S+Z by operator:${userInfo().username} after ${head.sequence} rows; last hash ${head.hash}$`,
    "m",
  );

describe("chartroom organization remove", () => {
  test("leaves nothing of an organization but where its audit chain ended, and others as they were", async () => {
    const dataDir = copied();
    const head = headOf(dataDir, second.organizationId);
    const { code, stdout, stderr } = await remove(dataDir, "Second", "--yes", "--force");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/^removing [1-9]\d* of audit_log$/m);
    expect(stdout.trimEnd().split("\n").at(-1)).toMatch(
      new RegExp(
        `^Second \\(${second.organizationId}\\) is removed, [1-9]\\d* rows; its audit chain ended at row ${head.sequence} with the hash ${head.hash}$`,
      ),
    );
    expect(counts(dataDir)).toEqual(before);
    expect(tablesNaming(dataDir, second.organizationId)).toEqual(["audit_log"]);
    expect(rowProblems(dataDir)).toEqual([]);
    const verified = await verify(dataDir);
    expect(verified.stdout).toMatch(removedLine(head));
    expect([verified.code, verified.stdout.trimEnd().split("\n").at(-1)]).toEqual([0, "every chain holds"]);

    const server = await startServer({ dataDir });
    const list = (token: string) => post(server, "ProjectService/ListProjects", {}, token);
    expect((await list(first.token)).body.projects).toHaveLength(before.project ?? -1);
    expect((await list(second.token)).status).toBe(401);
    const added = await addOrganization(server, "Second");
    expect((await list(added.token)).body.projects).toEqual([]);
    await server.stop();
  });

  test("is tested with rows in every table that an organization has", () => {
    expect(Object.keys(full).filter((table) => full[table] === before[table])).toEqual([]);
  });

  test("also empties tables that a later release adds, whether they carry the organization's id or refer to a row that does", async () => {
    const dataDir = copied();
    within(
      dataDir,
      `create table later (id text primary key, organization_id text not null) strict;
      create table later_part (first text references later (id), second text references project (id)) strict;
      insert into later select 'of ' || name, id from organization;
      insert into later_part select id, null from later union all select null, id from project`,
    );
    const { code, stderr } = await remove(dataDir, second.organizationId, "--yes", "--force");
    expect([code, stderr]).toEqual([0, ""]);
    const left = reading(dataDir, (db) => ({
      later: db.prepare("select id from later").pluck().all(),
      parts: db.prepare("select count(first) as first, count(second) as second from later_part").get(),
    }));
    expect(left.later).toHaveLength(1);
    expect(left.later).not.toContain("of Second");
    expect(left.parts).toEqual({ first: 1, second: before.project });
  });

  test("does nothing without --yes, for a name that nothing has, beside a server, or while something runs", async () => {
    const dataDir = copied();
    const unchanged = counts(dataDir);
    const told: string[] = [];
    for (const args of [["Second"], ["Third", "--yes"], ["Second", "--yes"]]) {
      const { code, stderr } = await remove(dataDir, ...args);
      expect(code).toBe(1);
      told.push(stderr);
    }
    expect(told).toEqual([
      `chartroom: this would remove Second (${second.organizationId}) for good, with its audit trail: make a backup, then add --yes\n`,
      "chartroom: no organization has the id or name Third\n",
      expect.stringMatching(
        /^chartroom: Second has running work \(\d+ environments, \d+ workflow executions, \d+ agent executions\): stop it first, or add --force\n$/,
      ),
    ]);
    const server = await startServer({ dataDir });
    const beside = await remove(dataDir, "Second", "--yes", "--force");
    expect([beside.code, beside.stderr]).toEqual([
      1,
      `chartroom: a server or another command uses the data folder ${dataDir}: organizations are removed while no server runs, so stop it first\n`,
    ]);
    await server.stop();
    expect(counts(dataDir)).toMatchObject({
      organization: unchanged.organization,
      project: unchanged.project,
    });
    expect((await verify(dataDir)).code).toBe(0);
  });

  test("removes all or nothing when it is killed", async () => {
    const outcomes = new Set<string>();
    // The first and a later table, the last but one line, and the result, when it is on the disk.
    for (const marker of [/^removing/, /project_remote/, /project_search/, /is removed/]) {
      const dataDir = copied();
      const child = spawn(
        process.execPath,
        ["bin/chartroom.js", ...command(dataDir, "Second", "--yes", "--force")],
        { cwd: join(import.meta.dirname, "../.."), stdio: ["ignore", "pipe", "inherit"] },
      );
      for await (const line of createInterface({ input: child.stdout })) if (marker.test(line)) break;
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      const verified = await verify(dataDir);
      expect([verified.code, verified.stdout.trimEnd().split("\n").at(-1)]).toEqual([0, "every chain holds"]);
      const isGone = removedLine(headOf(first.dataDir, second.organizationId)).test(verified.stdout);
      expect(counts(dataDir)).toEqual(isGone ? before : full);
      // Rows that were made up for the test agree with no body.
      expect(rowProblems(dataDir)).toEqual(isGone ? [] : rowProblems(first.dataDir));
      outcomes.add(isGone ? "gone" : "there");
    }
    expect([...outcomes].toSorted()).toEqual(["gone", "there"]);
  });

  test("is in a backup that is made afterwards; one from before has the organization", async () => {
    const dataDir = copied();
    const head = headOf(dataDir, second.organizationId);
    const restored = async (name: string) => {
      const [file, folder] = [join(temporaryFolder(), name), join(temporaryFolder(), name)];
      expect((await runCommand(["backup", file, "--data-dir", dataDir])).code).toBe(0);
      return async () => {
        expect((await runCommand(["restore", file, "--data-dir", folder])).code).toBe(0);
        copyFileSync(join(dataDir, "key.json"), join(folder, "key.json"));
        return { folder, verified: await verify(folder) };
      };
    };
    const earlier = await restored("earlier");
    expect((await remove(dataDir, "Second", "--yes", "--force")).code).toBe(0);
    const later = await (await restored("later"))();
    expect([later.verified.code, later.verified.stdout]).toEqual([
      0,
      expect.stringMatching(removedLine(head)),
    ]);
    const { folder, verified } = await earlier();
    expect([verified.code, headOf(folder, second.organizationId)]).toEqual([0, head]);
  });

  test("leaves a chain that breaks when somebody puts rows of the organization back", async () => {
    const dataDir = copied();
    expect((await remove(dataDir, "Second", "--yes", "--force")).code).toBe(0);
    within(
      dataDir,
      `attach '${join(first.dataDir, "chartroom.db")}' as other;
      insert into organization select * from other.organization where id = '${second.organizationId}';
      insert into audit_log select * from other.audit_log where organization_id = '${second.organizationId}'`,
    );
    const { code, stdout } = await verify(dataDir);
    expect(stdout).toMatch(
      new RegExp(
        `^organization ${second.organizationId}: \\d+ rows, 0 hold; breaks at row 1: the installation's chain says that the organization was removed$`,
        "m",
      ),
    );
    expect(code).toBe(1);
  });

  test("leaves a server without an organization when it removes the last one, until another is made", async () => {
    const dataDir = copied();
    for (const name of ["Second", "My organization"]) {
      expect((await remove(dataDir, name, "--yes", "--force")).code).toBe(0);
    }
    const server = await startServer({ dataDir });
    await until(
      async () => server.output(),
      (text) => text.includes("There is no organization any more"),
    );
    expect(server.output()).not.toContain("cr_pat_");
    const options = ["--name", "Third", "--email", "third@example.org", "--data-dir", dataDir];
    const { stdout } = await runCommand(["organization", "create", ...options]);
    const token = /cr_pat_\w+/.exec(stdout)?.[0];
    expect((await post(server, "ProjectService/ListProjects", {}, token)).status).toBe(200);
    expect(await server.stop()).toBe(0);
  });
});

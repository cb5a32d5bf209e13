import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { anchorBytes } from "../../src/domain/record/audit-anchor.ts";
import { loadKeys } from "../../src/keys.ts";
import { rowProblems } from "../crash/rows.ts";
import { post } from "../harness/call.ts";
import { copyData, dataEnvironmentOf, refusedWhileServerRuns } from "../harness/data-config.ts";
import { addOrganization } from "../harness/organization.ts";
import { postgresUrl } from "../harness/postgres-database.ts";
import { ROOT } from "../harness/program.ts";
import {
  countOf,
  type RawData,
  suspendWriters,
  tablesOf,
  untilForgotten,
  withRawData,
} from "../harness/raw-data.ts";
import {
  type HostedServer,
  runCommand,
  runHostedCommand,
  startHostedServer,
  startServer,
  stopAll,
  temporaryFolder,
} from "../harness/server.ts";
import { until } from "../harness/until.ts";
import { makeWorld } from "./world.ts";

/** Of the installation or of accounts, or of the engine's own. */
const SHARED =
  /^(account|audit_log|block_receipt|fact|installation|machine_token_use|migration|provider_identity|project_search_\w+|sign_in_attempt|subscription)$/;

let first: HostedServer;
let second: { readonly organizationId: string; readonly token: string };
/** Rows of each table before the second organization was made. */
let before: Record<string, number>;
let full: Record<string, number>;

beforeAll(async () => {
  first = await startHostedServer();
  await makeWorld(first);
  before = await counts(first.dataDir);
  second = await addOrganization(first, "Second");
  await makeWorld({ ...first, token: second.token });
  await first.stop();
  await fill(first.dataDir, second.organizationId);
  full = await counts(first.dataDir);
});
afterAll(stopAll);

function counts(dataDir: string): Promise<Record<string, number>> {
  return withRawData(dataDir, async (raw) => {
    const found: Record<string, number> = {};
    for (const table of await tablesOf(raw))
      if (!SHARED.test(table)) found[table] = await countOf(raw, table);
    return found;
  });
}

/** A value of each type of columns, of either engine. */
const VALUES: Readonly<Record<string, unknown>> = {
  ...{ INTEGER: 1, REAL: 1, TEXT: "{}", BLOB: Buffer.from("x") },
  ...{ bigint: 1, "double precision": 1, text: "{}", bytea: Buffer.from("x") },
};

/** An anchor of an organization's chain of which nothing has gone: another one breaks the chain. */
function anchorRow(dataDir: string, organization_id: string): Readonly<Record<string, unknown>> {
  const { audit } = loadKeys(join(dataDir, "key.json"));
  const facts = { organization_id, sequence: 0, chain_hash: null, rows: 0, until_sequence: 0, at: 1 };
  const named = { ...facts, key_id: audit.keyId };
  return { ...named, hash: audit.mac(anchorBytes(named)) };
}

/** The types of a table's columns by their names. */
const typesOf = (raw: RawData, table: string) =>
  raw.rows<{ name: string; type: string }>(
    raw.isPostgres
      ? "select column_name as name, data_type as type from information_schema.columns where table_name = ?"
      : "select name, type from pragma_table_info(?)",
    table,
  );

/** The references of a table, one row for each of their columns. */
const referencesOf = (raw: RawData, table: string) =>
  raw.rows<{ parent: string; from: string; to: string }>(
    raw.isPostgres
      ? `select confrelid::regclass::text as parent, child.attname as "from", parent.attname as "to"
        from pg_constraint cross join unnest(conkey, confkey) as pair (child_column, parent_column)
        join pg_attribute as child on child.attrelid = conrelid and child.attnum = child_column
        join pg_attribute as parent on parent.attrelid = confrelid and parent.attnum = parent_column
        where contype = 'f' and conrelid = cast(? as regclass)`
      : 'select "table" as parent, "from", "to" from pragma_foreign_key_list(?)',
    table,
  );

/** Adds a row of an organization to each table that has none: many kinds of rows exist for a moment only. */
async function fill(dataDir: string, organizationId: string): Promise<void> {
  const now = await counts(dataDir);
  await withRawData(dataDir, async (raw) => {
    for (const table of Object.keys(before).filter((name) => now[name] === before[name])) {
      const row: Record<string, unknown> = {};
      for (const { name, type } of await typesOf(raw, table))
        row[name] = name === "organization_id" ? organizationId : VALUES[type];
      // The newest row is of the organization that was filled last.
      for (const { parent, from, to } of await referencesOf(raw, table)) {
        const [newest] = await raw.rows(`select "${to}" as id from "${parent}" order by 1 desc limit 1`);
        row[from] = newest?.id;
      }
      await insert(raw, table, table === "audit_anchor" ? anchorRow(dataDir, organizationId) : row);
    }
  });
}

async function insert(raw: RawData, table: string, row: Record<string, unknown>): Promise<void> {
  const names = Object.keys(row);
  const [columns, values] = [names.map((name) => `"${name}"`).join(", "), names.map(() => "?").join(", ")];
  await raw.rows(`insert into "${table}" (${columns}) values (${values})`, ...Object.values(row));
}

/** Tables with a row that names an id in any of its columns. */
function tablesNaming(dataDir: string, id: string): Promise<string[]> {
  const names = (row: object) =>
    Object.values(row).some((value) => typeof value === "string" && value.includes(id));
  return withRawData(dataDir, async (raw) => {
    const found: string[] = [];
    for (const table of await tablesOf(raw))
      if ((await raw.rows(`select * from "${table}"`)).some(names)) found.push(table);
    return found;
  });
}

/** A folder of its own with the data of both organizations. */
function copied(): string {
  const folder = temporaryFolder();
  copyData(first.dataDir, folder);
  return folder;
}

/** The rows of a table that are an organization's. */
const rowsOf = (dataDir: string, table: string, column: string) =>
  withRawData(dataDir, (raw) =>
    raw.rows(`select * from ${table} where ${column} = ?`, second.organizationId),
  );

async function headOf(dataDir: string, id: string): Promise<{ sequence: number; hash: string }> {
  const [head] = await withRawData(dataDir, (raw) =>
    raw.rows<{ sequence: number; chain_hash: Buffer }>(
      "select sequence, chain_hash from organization where id = ?",
      id,
    ),
  );
  return { sequence: head?.sequence ?? -1, hash: head?.chain_hash.toString("hex") ?? "" };
}

const command = (dataDir: string, ...rest: string[]) => [
  ...["organization", "remove", ...rest],
  ...["--data-dir", dataDir],
];
const remove = (dataDir: string, ...rest: string[]) => runHostedCommand(command(dataDir, ...rest));
const verify = (dataDir: string) => runHostedCommand(["audit", "verify", "--data-dir", dataDir]);
const removedLine = (head: { sequence: number; hash: string }) =>
  new RegExp(
    `^organization ${second.organizationId}: removed at \\S+Z by operator:${userInfo().username} after ${head.sequence} rows; last hash ${head.hash}$`,
    "m",
  );

describe("chartroom organization remove", () => {
  test("leaves nothing of an organization but where its audit chain ended, and others as they were", async () => {
    const dataDir = copied();
    const head = await headOf(dataDir, second.organizationId);
    const { code, stdout, stderr } = await remove(dataDir, "Second", "--yes", "--force");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/^removing [1-9]\d* of audit_log$/m);
    expect(stdout.trimEnd().split("\n").at(-1)).toMatch(
      new RegExp(
        `^Second \\(${second.organizationId}\\) is removed, [1-9]\\d* rows; its audit chain ended at row ${head.sequence} with the hash ${head.hash}$`,
      ),
    );
    expect(await counts(dataDir)).toEqual(before);
    expect(await tablesNaming(dataDir, second.organizationId)).toEqual(["audit_log"]);
    expect(await rowProblems(dataDir)).toEqual([]);
    const verified = await verify(dataDir);
    expect(verified.stdout).toMatch(removedLine(head));
    expect([verified.code, verified.stdout.trimEnd().split("\n").at(-1)]).toEqual([0, "every chain holds"]);

    const server = await startHostedServer({ dataDir });
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
    await withRawData(dataDir, (raw) =>
      raw.run(`create table later (id text primary key, organization_id text not null);
        create table later_part (first text references later (id), second text references project (id));
        insert into later select 'of ' || name, id from organization;
        insert into later_part select id, null from later union all select null, id from project`),
    );
    const { code, stderr } = await remove(dataDir, second.organizationId, "--yes", "--force");
    expect([code, stderr]).toEqual([0, ""]);
    const left = await withRawData(dataDir, async (raw) => ({
      later: await raw.rows("select id from later"),
      parts: await raw.rows("select count(first) as first, count(second) as second from later_part"),
    }));
    expect(left.later).toHaveLength(1);
    expect(left.later).not.toEqual([{ id: "of Second" }]);
    expect(left.parts).toEqual([{ first: 1, second: before.project }]);
  });

  test("does nothing without --yes, for a name that nothing has, while a server runs, or while something else runs", async () => {
    const dataDir = copied();
    const unchanged = await counts(dataDir);
    const messages: string[] = [];
    for (const args of [["Second"], ["Third", "--yes"], ["Second", "--yes"]]) {
      const { code, stderr } = await remove(dataDir, ...args);
      expect(code).toBe(1);
      messages.push(stderr);
    }
    expect(messages).toEqual([
      `chartroom: this would remove Second (${second.organizationId}) permanently, with its audit trail: make a backup, then add --yes\n`,
      "chartroom: no organization has the id or name Third\n",
      expect.stringMatching(
        /^chartroom: Second has running work \(\d+ environments, \d+ workflow executions, \d+ agent executions\): stop it first, or add --force\n$/,
      ),
    ]);
    const server = await startHostedServer({ dataDir });
    const whileServing = await remove(dataDir, "Second", "--yes", "--force");
    expect([whileServing.code, whileServing.stderr]).toEqual([
      1,
      `chartroom: ${refusedWhileServerRuns(dataDir, "organizations are removed")}\n`,
    ]);
    await server.stop();
    expect(await counts(dataDir)).toMatchObject({
      organization: unchanged.organization,
      project: unchanged.project,
    });
    expect((await verify(dataDir)).code).toBe(0);
  });

  test("removes all or nothing when it is killed", async () => {
    // The first and a later table, the last but one line of SQLite, and the result, when it is on the disk.
    const index = postgresUrl() !== undefined ? [] : [/project_search/];
    for (const marker of [/^removing/, /project_remote/, ...index, /is removed/]) {
      const dataDir = copied();
      const isDone = String(marker) === "/is removed/";
      // However late it is killed, it has not recorded the removal, which it does last.
      const goOn = isDone ? undefined : await suspendWriters(dataDir, "insert on audit_log");
      const child = spawn(
        process.execPath,
        ["bin/chartroom.js", ...command(dataDir, "Second", "--yes", "--force")],
        {
          cwd: ROOT,
          env: { ...process.env, ...dataEnvironmentOf(dataDir) },
          stdio: ["ignore", "pipe", "inherit"],
        },
      );
      for await (const line of createInterface({ input: child.stdout })) if (marker.test(line)) break;
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      await untilForgotten(dataDir);
      await goOn?.();
      const verified = await verify(dataDir);
      expect([verified.code, verified.stdout.trimEnd().split("\n").at(-1)]).toEqual([0, "every chain holds"]);
      const isGone = removedLine(await headOf(first.dataDir, second.organizationId)).test(verified.stdout);
      expect([marker, isGone]).toEqual([marker, isDone]);
      expect(await counts(dataDir)).toEqual(isGone ? before : full);
      // Rows that were made up for the test agree with no body.
      expect(await rowProblems(dataDir)).toEqual(isGone ? [] : await rowProblems(first.dataDir));
    }
  });

  test("is in a backup that is made afterwards; one from before has the organization", async () => {
    const dataDir = copied();
    const head = await headOf(dataDir, second.organizationId);
    const restored = async (name: string) => {
      const [file, folder] = [join(temporaryFolder(), name), join(temporaryFolder(), name)];
      expect((await runHostedCommand(["backup", file, "--data-dir", dataDir])).code).toBe(0);
      return async () => {
        expect((await runHostedCommand(["restore", file, "--data-dir", folder])).code).toBe(0);
        mkdirSync(folder, { recursive: true });
        copyFileSync(join(dataDir, "key.json"), join(folder, "key.json"));
        return { folder, verified: await verify(folder) };
      };
    };
    const earlier = await restored("earlier");
    const args = command(dataDir, "Second", "--yes", "--force");
    expect((await runCommand(args)).code).toBe(0);
    const later = await (await restored("later"))();
    expect([later.verified.code, later.verified.stdout]).toEqual([
      0,
      expect.stringMatching(removedLine(head)),
    ]);
    const { folder, verified } = await earlier();
    expect([verified.code, await headOf(folder, second.organizationId)]).toEqual([0, head]);
  });

  test("leaves a chain that breaks when somebody puts rows of the organization back", async () => {
    const dataDir = copied();
    expect((await remove(dataDir, "Second", "--yes", "--force")).code).toBe(0);
    const organizations = await rowsOf(first.dataDir, "organization", "id");
    const entries = await rowsOf(first.dataDir, "audit_log", "organization_id");
    await withRawData(dataDir, async (raw) => {
      for (const row of organizations) await insert(raw, "organization", row);
      for (const row of entries) await insert(raw, "audit_log", row);
    });
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

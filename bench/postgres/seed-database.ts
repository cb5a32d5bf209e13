import { once } from "node:events";
import { createWriteStream, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { finished } from "node:stream/promises";
import pg from "pg";
import { v7 } from "uuid";
import { loadKeys } from "../../src/keys.ts";
import { openPostgresStore } from "../../src/store/postgres/open.ts";
import { type Owner, projectRow } from "../data/project-rows.ts";
import { foundOrganizations, type Seeded, type Sizes, seeded } from "../data/seed.ts";
import type { BenchCluster } from "./cluster.ts";

/** The facts about a database that the load needs, and its name. */
export interface SeededDatabase extends Seeded {
  readonly database: string;
}

/** The filled tables with their filled columns. */
const TABLES = {
  project: [
    "id",
    "organization_id",
    "creator_id",
    "desired_phase",
    "popularity",
    "search_text",
    "technical_description",
    "used_by",
    "body",
  ],
  project_remote: ["project_id", "organization_id", "remote_uri"],
  project_annotation: ["project_id", "organization_id", "key", "value"],
} as const;

type Files = { readonly [T in keyof typeof TABLES]: RowFile };

/** Creates a database: organizations through the services, their projects with COPY in the form the server writes. */
export async function seedDatabase(
  cluster: BenchCluster,
  database: string,
  dataDir: string,
  sizes: Sizes,
): Promise<SeededDatabase> {
  mkdirSync(dataDir, { recursive: true });
  await cluster.run("postgres", `create database ${database}`);
  const keys = loadKeys(join(dataDir, "key.json"));
  const url = cluster.urlOf(database);
  const store = await openPostgresStore({ url, now: Date.now, newId: v7, audit: keys.audit });
  const { main, others } = await foundOrganizations(store, keys, sizes);
  await store.close();
  const files = Object.fromEntries(
    Object.keys(TABLES).map((table) => [table, openRowFile(join(cluster.folder, `${database}-${table}`))]),
  ) as unknown as Files;
  const ids = await writeProjects(files, main.owner, sizes.projects, true);
  for (const { owner } of others) await writeProjects(files, owner, sizes.others.projects, false);
  await copyFiles(url, files);
  return { ...seeded(dataDir, main, others, ids), database };
}

/** Writes an organization's projects with all rows that the server writes for them; returns their ids, ascending. */
async function writeProjects(files: Files, owner: Owner, count: number, isLarge: boolean): Promise<string[]> {
  const { organizationId, creatorId } = owner;
  const ids: string[] = [];
  for (let index = 0; index < count; index++) {
    const { id, popularity, searchText, usedBy, body, remote, annotations } = projectRow(
      owner,
      index,
      count,
      isLarge,
    );
    ids.push(id);
    await files.project.write([
      id,
      organizationId,
      creatorId,
      "1",
      String(popularity),
      searchText,
      "",
      usedBy,
      body,
    ]);
    await files.project_remote.write([id, organizationId, remote]);
    for (const [key, value] of Object.entries(annotations)) {
      await files.project_annotation.write([id, organizationId, key, value]);
    }
  }
  return ids;
}

/** A file of rows for a table, in the format of COPY. */
interface RowFile {
  readonly path: string;
  write(values: readonly string[]): Promise<void>;
  end(): Promise<void>;
}

function openRowFile(path: string): RowFile {
  const stream = createWriteStream(path, { highWaterMark: 2 ** 20 });
  return {
    path,
    async write(values) {
      if (!stream.write(`${values.map(copyText).join("\t")}\n`)) await once(stream, "drain");
    },
    async end() {
      stream.end();
      await finished(stream);
    },
  };
}

const ESCAPES: Readonly<Record<string, string>> = { "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r" };

function copyText(value: string): string {
  return value.replace(/[\\\t\n\r]/g, (character) => ESCAPES[character] ?? character);
}

/** Fills the tables without triggers and indexes; recreates the indexes at the end, which is faster. */
async function copyFiles(url: string, files: Files): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    // The rows are consistent, so foreign keys need not be checked.
    await client.query("set session_replication_role = replica");
    await client.query("set maintenance_work_mem = '1GB'");
    const names = Object.keys(TABLES) as (keyof typeof TABLES)[];
    const { rows: indexes } = await client.query<{ name: string; made: string }>(
      `select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as made from pg_index
       where indrelid = any($1::regclass[]) and not indisprimary`,
      [names],
    );
    for (const { name } of indexes) await client.query(`drop index ${name}`);
    for (const name of names) {
      const { path, end } = files[name];
      await end();
      await client.query(`copy ${name} (${TABLES[name].join(", ")}) from '${path}'`);
      rmSync(path);
    }
    for (const { made } of indexes) await client.query(made);
    await client.query(
      `update organization_storage set bytes = organization_storage.bytes + counted.bytes from (
         select organization_id, sum(octet_length(technical_description) + octet_length(used_by) + octet_length(body)) as bytes
         from project group by 1) as counted
       where counted.organization_id = organization_storage.organization_id`,
    );
    await client.query("reset session_replication_role");
    await client.query("vacuum (analyze)");
    await client.query("checkpoint");
  } finally {
    await client.end();
  }
}

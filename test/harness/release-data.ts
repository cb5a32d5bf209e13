import { execFileSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import pg from "pg";
import { DATABASE_FILE } from "../../src/store/sqlite/open.ts";
import { databaseUrlOf, emptyDatabaseFor } from "./data-config.ts";
import { postgresUrl } from "./postgres-database.ts";
import { ROOT } from "./program.ts";

/** What servers of releases have left, a folder for each; the keys in it are of tests alone. */
const FIXTURES = join(ROOT, "test/release/fixtures");

const engine = () => (postgresUrl() === undefined ? "sqlite" : "postgres");
const dataFile = () => (postgresUrl() === undefined ? "chartroom.db.gz" : "chartroom.sql.gz");

/** Returns the versions of which there is data of this run's engine. */
export function keptReleases(): readonly string[] {
  return readdirSync(FIXTURES).filter((version) => existsSync(join(FIXTURES, version, engine(), dataFile())));
}

/** Returns what a server of a release answered about its data before it ended. */
export function answersOf(version: string): unknown {
  return JSON.parse(readFileSync(join(FIXTURES, version, engine(), "answers.json"), "utf8"));
}

/** Puts the data of a release into a folder, with its key file; over PostgreSQL into the folder's own database. */
export async function placeReleaseData(version: string, dataDir: string): Promise<void> {
  const from = join(FIXTURES, version, engine());
  const data = gunzipSync(readFileSync(join(from, dataFile())));
  copyFileSync(join(from, "key.json"), join(dataDir, "key.json"));
  chmodSync(join(dataDir, "key.json"), 0o600);
  if (postgresUrl() === undefined) return writeFileSync(join(dataDir, DATABASE_FILE), data, { mode: 0o600 });
  const client = new pg.Client({ connectionString: emptyDatabaseFor(dataDir) });
  await client.connect();
  try {
    await client.query(data.toString());
  } finally {
    await client.end();
  }
}

/**
 * Keeps what a stopped server has left as the data of a release. Over PostgreSQL it needs Debian's pg_dump, and an
 * engine that is no newer.
 */
export function keepReleaseData(version: string, dataDir: string, answers: unknown): void {
  const to = join(FIXTURES, version, engine());
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
  copyFileSync(join(dataDir, "key.json"), join(to, "key.json"));
  chmodSync(join(to, "key.json"), 0o644);
  writeFileSync(join(to, "answers.json"), `${JSON.stringify(answers, null, 2)}\n`);
  const url = postgresUrl() === undefined ? undefined : databaseUrlOf(dataDir);
  writeFileSync(
    join(to, dataFile()),
    gzipSync(url === undefined ? readFileSync(join(dataDir, DATABASE_FILE)) : dump(url), { level: 9 }),
  );
}

/** Returns the statements that make a database again; those of `psql` itself are left out. */
function dump(url: string): string {
  const args = ["--inserts", "--no-owner", "--no-privileges", "--dbname", url];
  const text = execFileSync("pg_dump", args, { encoding: "utf8", maxBuffer: 1 << 28 });
  return text.replaceAll(/^\\.*\n/gm, "");
}

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { v7 } from "uuid";
import { type Keys, loadKeys } from "../../src/keys.ts";
import { createOrganizationWithToken } from "../../src/services/access/organization-creation.ts";
import { DATABASE_FILE, openStore } from "../../src/store/sqlite/open.ts";
import type { Store } from "../../src/store/store.ts";
import { fillProjects } from "./fill-projects.ts";
import type { Owner } from "./project-rows.ts";

/** Sizes of a data folder: one organization that the load authenticates as, and others. */
export interface Sizes {
  readonly projects: number;
  readonly others: { readonly organizations: number; readonly projects: number };
}

/** The facts about a data folder that the load needs. */
export interface Seeded {
  readonly dataDir: string;
  /** The token of the administrator of the main organization. */
  readonly token: string;
  readonly projectIds: readonly string[];
  readonly organizationId: string;
  /** The tokens of the administrators of the other organizations. */
  readonly otherTokens: readonly string[];
}

/** Number of ids that the load chooses from. */
const KNOWN_IDS = 1_000;

/** Creates a data folder: organizations through the services, their projects with SQL in the form the server writes. */
export async function seed(dataDir: string, sizes: Sizes): Promise<Seeded> {
  mkdirSync(dataDir, { recursive: true });
  const keys = loadKeys(join(dataDir, "key.json"));
  const store = openStore({ dataDir, now: Date.now, newId: v7, audit: keys.audit });
  const { main, others } = await foundOrganizations(store, keys, sizes);
  await store.close();
  const db = openForFilling(dataDir);
  let ids: readonly string[] = [];
  withoutIndexes(db, () => {
    ids = fillProjects(db, { owner: main.owner, number: 1, isLarge: true }, sizes.projects);
    for (const [index, { owner }] of others.entries()) {
      fillProjects(db, { owner, number: index + 2, isLarge: false }, sizes.others.projects);
    }
  });
  db.pragma("wal_checkpoint(TRUNCATE)");
  db.close();
  return seeded(dataDir, main, others, ids);
}

/** An organization with a token of its administrator. */
interface Founded {
  readonly owner: Owner;
  readonly token: string;
}

/** Creates the organizations, without projects. */
export async function foundOrganizations(
  store: Store,
  keys: Keys,
  { others: { organizations } }: Sizes,
): Promise<{ readonly main: Founded; readonly others: readonly Founded[] }> {
  const main = await found(store, keys, "Main");
  const others: Founded[] = [];
  for (let number = 1; number <= organizations; number++) {
    others.push(await found(store, keys, `Other ${number}`));
  }
  return { main, others };
}

/** Returns the facts that the load needs for data with these projects of the main organization. */
export function seeded(
  dataDir: string,
  { token, owner }: Founded,
  others: readonly Founded[],
  ids: readonly string[],
): Seeded {
  const step = Math.max(1, Math.floor(ids.length / KNOWN_IDS));
  return {
    dataDir,
    token,
    projectIds: ids.filter((_, index) => index % step === 0).slice(0, KNOWN_IDS),
    organizationId: owner.organizationId,
    otherTokens: others.map((other) => other.token),
  };
}

async function found(store: Store, keys: Keys, organizationName: string): Promise<Founded> {
  const { organizationId, userId, token } = await createOrganizationWithToken(store, keys, {
    operation: "npm run bench",
    organizationName,
    accountName: "Administrator",
    email: `${organizationName.toLowerCase().replaceAll(" ", "-")}@example.org`,
  });
  return { owner: { organizationId, creatorId: userId }, token };
}

/** Opens the database without fsync and foreign key checks, since the data can be recreated. */
function openForFilling(dataDir: string): Database.Database {
  const db = new Database(join(dataDir, DATABASE_FILE));
  db.pragma("synchronous = OFF");
  db.pragma("foreign_keys = OFF");
  db.pragma("cache_size = -500000");
  return db;
}

/** Runs `fill` without the indexes of its tables and recreates them at the end, which is faster. */
function withoutIndexes(db: Database.Database, fill: () => void): void {
  const indexes = db
    .prepare<[], { name: string; sql: string }>(
      `select name, sql from sqlite_schema
       where type = 'index' and sql is not null and tbl_name in ('project', 'project_remote', 'project_annotation')`,
    )
    .all();
  for (const { name } of indexes) db.exec(`drop index ${name}`);
  fill();
  for (const { sql } of indexes) db.exec(sql);
}

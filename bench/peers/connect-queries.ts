import { join } from "node:path";
import { fromJsonString } from "@bufbuild/protobuf";
import Database from "better-sqlite3";
import { Kysely, PostgresDialect, SqliteDialect, sql } from "kysely";
import { type Project, Project_UsedBySchema, ProjectSchema } from "#gen/service/v1/project_pb.js";
import type { ProjectTable } from "../../src/store/project/project-schema.ts";
import type { Schema } from "../../src/store/schema.ts";
import { DATABASE_FILE } from "../../src/store/sqlite/open.ts";
import { searchTables } from "../../src/store/sqlite/search/search-tables.ts";
import { trigramQuery } from "../../src/store/sqlite/search/trigrams.ts";
import { openPeerPool } from "./pg-queries.ts";
import { type PeerCaller, peerCallerOf } from "./project-queries.ts";

/** Lists projects of an organization by popularity, highest first. */
type ListRows = (
  organizationId: string,
  search: string,
  limit: number,
) => Promise<Pick<ProjectTable, "id" | "popularity" | "body" | "used_by">[]>;

/** Opens the reads of the connect-node peer on a single connection, as Kysely's documentation of SQLite does. */
export function openConnectQueries(dataDir: string) {
  const database = new Database(join(dataDir, DATABASE_FILE));
  database.pragma("journal_mode = WAL");
  database.pragma("synchronous = FULL");
  database.pragma("foreign_keys = ON");
  const db = new Kysely<Schema>({ dialect: new SqliteDialect({ database }) });
  return connectQueries(db, (organizationId, search, limit) => {
    let query = searchTables(db)
      .selectFrom("project")
      .select(["id", "popularity", "body", "used_by"])
      .where("project.organization_id", "=", organizationId);
    if (search !== "") {
      query = query
        .innerJoin("project_search", "project_search.rowid", "project.search_row")
        .innerJoin("project_search_range as range", "range.organization_id", "project.organization_id")
        .where(sql<boolean>`project_search match ${trigramQuery(search)}`)
        .where(sql<boolean>`project_search.rowid between range.number * 1073741824 and range.last_row`)
        .where(sql<boolean>`instr(search_text, ${search.toLowerCase()}) > 0`);
    }
    return query.orderBy("popularity", "desc").orderBy("id").limit(limit).execute();
  });
}

/** Opens the reads of the connect-node peer on PostgreSQL, without searches. */
export function openConnectQueriesOnPostgres(databaseUrl: string) {
  const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool: openPeerPool(databaseUrl) }) });
  return connectQueries(db, (organizationId, _search, limit) =>
    db
      .selectFrom("project")
      .select(["id", "popularity", "body", "used_by"])
      .where("organization_id", "=", organizationId)
      .orderBy("popularity", "desc")
      .orderBy("id")
      .limit(limit)
      .execute(),
  );
}

function connectQueries(db: Kysely<Schema>, listRows: ListRows) {
  return {
    db,
    async callerOf(hash: Buffer): Promise<PeerCaller | undefined> {
      const found = await db
        .selectFrom("token")
        .leftJoin("member", "member.id", "token.subject_id")
        .leftJoin("account", "account.id", "member.account_id")
        .select([
          "token.id",
          "token.organization_id",
          "token.kind",
          "token.subject_id",
          "token.read_only",
          "token.expires_at",
          "token.disabled_at",
          "account.blocked_at",
          "member.role",
          "member.left_at",
        ])
        .where("token.hash", "=", hash)
        .executeTakeFirst();
      return peerCallerOf(found);
    },
    async findProject({ organizationId }: PeerCaller, id: string): Promise<Project | undefined> {
      const row = await db
        .selectFrom("project")
        .select(["body", "used_by"])
        .where("id", "=", id)
        .where("organization_id", "=", organizationId)
        .executeTakeFirst();
      return row && projectOf(row);
    },
    /** By popularity, highest first. */
    async listProjects(organizationId: string, search: string, limit: number) {
      const rows = await listRows(organizationId, search, limit);
      return rows.map((row) => ({ project: projectOf(row), position: row }));
    },
  };
}

function projectOf({ body, used_by }: { readonly body: string; readonly used_by: string }): Project {
  const project = fromJsonString(ProjectSchema, body);
  project.usedBy = fromJsonString(Project_UsedBySchema, used_by);
  return project;
}

import { join } from "node:path";
import { fromJsonString } from "@bufbuild/protobuf";
import Database from "better-sqlite3";
import { Kysely, SqliteDialect, sql } from "kysely";
import { type Project, Project_UsedBySchema, ProjectSchema } from "#gen/service/v1/project_pb.js";
import type { Schema } from "../../src/store/schema.ts";
import { DATABASE_FILE } from "../../src/store/sqlite/open.ts";
import { searchTables } from "../../src/store/sqlite/search/search-tables.ts";
import { trigramQuery } from "../../src/store/sqlite/search/trigrams.ts";
import type { PeerCaller } from "./project-queries.ts";

/** The reads of the connect-node peer, and its one connection, as Kysely's page on SQLite opens it. */
export function openConnectQueries(dataDir: string) {
  const database = new Database(join(dataDir, DATABASE_FILE));
  database.pragma("journal_mode = WAL");
  database.pragma("synchronous = FULL");
  database.pragma("foreign_keys = ON");
  const db = new Kysely<Schema>({ dialect: new SqliteDialect({ database }) });
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
      if (found?.kind !== "personal") return undefined;
      if (found.expires_at <= Date.now() || found.disabled_at !== null || found.blocked_at !== null) {
        return undefined;
      }
      if (found.role === null || found.left_at !== null) return undefined;
      return { organizationId: found.organization_id, id: found.subject_id, tokenId: found.id };
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
      const rows = await query.orderBy("popularity", "desc").orderBy("id").limit(limit).execute();
      return rows.map((row) => ({ project: projectOf(row), position: row }));
    },
  };
}

function projectOf({ body, used_by }: { readonly body: string; readonly used_by: string }): Project {
  const project = fromJsonString(ProjectSchema, body);
  project.usedBy = fromJsonString(Project_UsedBySchema, used_by);
  return project;
}

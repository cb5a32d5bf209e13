import { join } from "node:path";
import Database from "better-sqlite3";
import { DATABASE_FILE } from "../../src/store/sqlite/open.ts";
import { trigramQuery } from "../../src/store/sqlite/search/trigrams.ts";
import type { openKeys } from "./token-hash.ts";

/** An authenticated caller. */
export interface PeerCaller {
  readonly organizationId: string;
  readonly id: string;
  readonly tokenId: string;
}

export interface PeerRow {
  readonly id: string;
  readonly popularity: number;
  readonly body: string;
  readonly used_by: string;
}

export interface FoundToken {
  readonly id: string;
  readonly organization_id: string;
  readonly kind: string;
  readonly subject_id: string;
  readonly expires_at: number;
  readonly disabled_at: number | null;
  readonly blocked_at: number | null;
  readonly role: number | null;
  readonly left_at: number | null;
}

export const FIND_TOKEN = `
  select token.id, token.organization_id, token.kind, token.subject_id, token.expires_at, token.disabled_at,
    account.blocked_at, member.role, member.left_at
  from token
  left join member on member.id = token.subject_id
  left join account on account.id = member.account_id
  where token.hash = ?`;

/** Returns a token's caller, or undefined if the token is expired or disabled, or its user is blocked or no member. */
export function peerCallerOf(found: FoundToken | undefined): PeerCaller | undefined {
  if (found?.kind !== "personal") return undefined;
  if (found.expires_at <= Date.now() || found.disabled_at !== null || found.blocked_at !== null) {
    return undefined;
  }
  if (found.role === null || found.left_at !== null) return undefined;
  return { organizationId: found.organization_id, id: found.subject_id, tokenId: found.id };
}

/**
 * Opens a data folder for a peer that reads with prepared statements of better-sqlite3.
 *
 * @param edit changes each statement before it is prepared; the default changes nothing
 */
export function openQueries(
  dataDir: string,
  keys: ReturnType<typeof openKeys>,
  edit: (statement: string) => string = (statement) => statement,
) {
  const db = new Database(join(dataDir, DATABASE_FILE), { readonly: true });
  const findToken = db.prepare<[Buffer], FoundToken>(edit(FIND_TOKEN));
  const getProject = db.prepare<[string, string], Pick<PeerRow, "body" | "used_by">>(
    edit("select body, used_by from project where id = ? and organization_id = ?"),
  );
  const listProjects = db.prepare<[string, number], PeerRow>(
    edit(`select id, popularity, body, used_by from project where organization_id = ?
     order by popularity desc, id limit ?`),
  );
  const searchProjects = db.prepare<[string, string, string, string, number], PeerRow>(
    edit(`select id, popularity, body, used_by
     from project_search join project on project.search_row = project_search.rowid
     where project_search match ?
       and project_search.rowid between (select number * 1073741824 from project_search_range where organization_id = ?)
         and (select last_row from project_search_range where organization_id = ?)
       and instr(search_text, ?) > 0
     order by popularity desc, id limit ?`),
  );
  return {
    callerOf(authorization: string | undefined): PeerCaller | undefined {
      const hash = keys.tokenHash(authorization);
      return hash && peerCallerOf(findToken.get(hash));
    },
    project: (id: string, organizationId: string) => getProject.get(id, organizationId),
    /** By popularity, highest first. One row more than a page shows that another page follows. */
    projects: (organizationId: string, search: string, limit: number) =>
      search === ""
        ? listProjects.all(organizationId, limit)
        : searchProjects.all(
            trigramQuery(search),
            organizationId,
            organizationId,
            search.toLowerCase(),
            limit,
          ),
  };
}

import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import Database from "better-sqlite3";
import { diffOf } from "../../src/store/record/packed-diff.ts";
import type { AuditLogTable } from "../../src/store/record/record-schema.ts";
import { DATABASE_FILE } from "../../src/store/sqlite/open.ts";
import type { LoadRequest } from "../load/task.ts";
import type { Peer } from "./start-peer.ts";

/** Rows by their table. */
export type RowsByTable = Readonly<Record<string, readonly unknown[]>>;

/** Queries for the rows of a project and of its last change, with the columns that are the same in each run. */
export const ROW_QUERIES = {
  project: `select project.organization_id, creator_id, desired_phase, search_text, body, last_row = search_row as found
    from project join project_search_range using (organization_id) where id = ?`,
  project_remote: "select organization_id, remote_uri from project_remote where project_id = ? order by 2",
  project_annotation:
    "select organization_id, key, value from project_annotation where project_id = ? order by 2",
  audit_log: `select organization_id, actor_id, actor_principal, operation, subject_type, reason, diff,
    packed_diff, length(previous_hash), length(hash) from audit_log where subject_id = ? order by sequence desc limit 1`,
  event: `select organization_id, kind, resource_type from event
    where resource_id = ? order by sequence desc limit 1`,
};

const TIME = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;

/**
 * @param rowsOf reads the rows of a project that `ROW_QUERIES` names
 * @throws when two peers write different rows for a change of a project, since they would not do the same work
 */
export async function expectSameRows(
  peers: readonly Peer[],
  token: string,
  { operation, body, token: callerToken = token }: LoadRequest,
  rowsOf: RowsOf = rowsInFolder,
): Promise<void> {
  const written = await Promise.all(
    peers.map(async (peer) => {
      const res = await fetch(`${peer.url}/api/service.v1.${operation}`, {
        method: "POST",
        headers: { authorization: `Bearer ${callerToken}`, "content-type": "application/json" },
        body,
      });
      const answer = (await res.json()) as { project?: { id: string } };
      if (!answer.project) throw new Error(`${operation} failed: ${JSON.stringify(answer)}`);
      return comparable(await rowsOf(peer, answer.project.id), answer.project.id);
    }),
  );
  const [first] = written;
  for (const [index, rows] of written.entries()) {
    const absent = Object.keys(ROW_QUERIES).filter((table) => rows[table]?.length === 0);
    if (isDeepStrictEqual(rows, first) && absent.length === 0) continue;
    const [one, other] = [peers[0]?.name, peers[index]?.name];
    throw new Error(
      `${one} and ${other} leave different rows, or none in ${absent}, behind ${operation} ${body}:\n${JSON.stringify(first)}\n${JSON.stringify(rows)}`,
    );
  }
}

/** Reads a project's rows from a peer's data. */
export type RowsOf = (peer: Peer, projectId: string) => RowsByTable | Promise<RowsByTable>;

function rowsInFolder({ dataDir }: Peer, id: string): RowsByTable {
  const db = new Database(join(dataDir, DATABASE_FILE), { readonly: true });
  try {
    return Object.fromEntries(
      Object.entries(ROW_QUERIES).map(([table, query]) => [table, db.prepare(query).all(id)]),
    );
  } finally {
    db.close();
  }
}

/** Returns rows with the text of their diffs and without values that differ from run to run: the id and times. */
function comparable(rows: RowsByTable, id: string): RowsByTable {
  const audit = ((rows.audit_log ?? []) as AuditLogTable[]).map((row) => ({
    ...row,
    diff: diffOf(row),
    packed_diff: row.packed_diff !== null,
  }));
  return JSON.parse(
    JSON.stringify({ ...rows, audit_log: audit })
      .replaceAll(id, "id")
      .replace(TIME, "time"),
  );
}

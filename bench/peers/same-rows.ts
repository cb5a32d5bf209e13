import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import Database from "better-sqlite3";
import { DATABASE_FILE } from "../../src/store/sqlite/open.ts";
import type { LoadRequest } from "../load/task.ts";
import type { Peer } from "./start-peer.ts";

/** Rows of a project and of its last change, each with the columns that do not differ from run to run. */
const QUERIES = {
  project: `select project.organization_id, creator_id, desired_phase, search_text, body, last_row = search_row as found
    from project join project_search_range using (organization_id) where id = ?`,
  project_remote: "select organization_id, remote_uri from project_remote where project_id = ? order by 2",
  project_annotation:
    "select organization_id, key, value from project_annotation where project_id = ? order by 2",
  audit_log: `select organization_id, actor_id, actor_principal, operation, subject_type, reason, diff,
    length(previous_hash), length(hash) from audit_log where subject_id = ? order by sequence desc limit 1`,
  event: `select organization_id, kind, resource_type from event
    where resource_id = ? order by sequence desc limit 1`,
};

const TIME = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;

/** @throws when a change of a project leaves different rows with two peers: they would not do the same work */
export async function expectSameRows(
  peers: readonly Peer[],
  token: string,
  { operation, body }: LoadRequest,
): Promise<void> {
  const written = await Promise.all(
    peers.map(async ({ url, dataDir }) => {
      const res = await fetch(`${url}/api/service.v1.${operation}`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body,
      });
      const answer = (await res.json()) as { project?: { id: string } };
      if (!answer.project) throw new Error(`${operation} failed: ${JSON.stringify(answer)}`);
      return rowsOf(dataDir, answer.project.id);
    }),
  );
  const [first] = written;
  for (const [index, rows] of written.entries()) {
    const absent = Object.keys(QUERIES).filter((table) => rows[table]?.length === 0);
    if (isDeepStrictEqual(rows, first) && absent.length === 0) continue;
    const [one, other] = [peers[0]?.name, peers[index]?.name];
    throw new Error(
      `${one} and ${other} leave different rows, or none in ${absent}, behind ${operation} ${body}:\n${JSON.stringify(first)}\n${JSON.stringify(rows)}`,
    );
  }
}

function rowsOf(dataDir: string, id: string): Record<string, unknown[]> {
  const db = new Database(join(dataDir, DATABASE_FILE), { readonly: true });
  try {
    const rows = Object.entries(QUERIES).map(([table, query]) => {
      const text = JSON.stringify(db.prepare(query).all(id));
      return [table, JSON.parse(text.replaceAll(id, "id").replace(TIME, "time"))];
    });
    return Object.fromEntries(rows);
  } finally {
    db.close();
  }
}

import type Database from "better-sqlite3";
import { searchTrigrams } from "../../src/store/sqlite/search/trigrams.ts";
import { type Owner, projectRow } from "./project-rows.ts";

/** Number of rows reserved for an organization in the index of search texts (migration 0006). */
const RANGE_ROWS = 2 ** 30;

const ROWS_A_COMMIT = 20_000;

export interface Organization {
  readonly owner: Owner;
  /** The number of its range in the index of search texts, from 1. */
  readonly number: number;
  /** Whether the load authenticates as this organization. */
  readonly isLarge: boolean;
}

/** Inserts an organization's projects with all rows that the server writes for them; returns their ids, ascending. */
export function fillProjects(
  db: Database.Database,
  { owner, number, isLarge }: Organization,
  count: number,
): string[] {
  const insertProject = db.prepare(
    `insert into project (id, organization_id, creator_id, desired_phase, popularity, search_text, search_row,
      technical_description, used_by, body) values (?, ?, ?, 1, ?, ?, ?, '', ?, ?)`,
  );
  const insertGrams = db.prepare("insert into project_search (rowid, grams) values (?, ?)");
  const insertRemote = db.prepare(
    "insert into project_remote (project_id, organization_id, remote_uri) values (?, ?, ?)",
  );
  const insertAnnotation = db.prepare(
    "insert into project_annotation (project_id, organization_id, key, value) values (?, ?, ?, ?)",
  );
  const { organizationId, creatorId } = owner;
  const ids: string[] = [];
  db.exec("begin");
  for (let index = 0; index < count; index++) {
    const row = projectRow(owner, index, count, isLarge);
    const searchRow = number * RANGE_ROWS + index + 1;
    insertProject.run(
      row.id,
      organizationId,
      creatorId,
      row.popularity,
      row.searchText,
      searchRow,
      row.usedBy,
      row.body,
    );
    insertGrams.run(BigInt(searchRow), searchTrigrams(row.searchText));
    insertRemote.run(row.id, organizationId, row.remote);
    for (const [key, value] of Object.entries(row.annotations)) {
      insertAnnotation.run(row.id, organizationId, key, value);
    }
    ids.push(row.id);
    // Commit in between: a write-ahead log of a million rows would take as much disk space as the rows.
    if (index % ROWS_A_COMMIT === ROWS_A_COMMIT - 1) db.exec("commit; begin");
  }
  db.prepare("insert into project_search_range (organization_id, number, last_row) values (?, ?, ?)").run(
    organizationId,
    number,
    number * RANGE_ROWS + count,
  );
  db.exec("commit");
  return ids;
}

import { join } from "node:path";
import Database from "better-sqlite3";
import { createPageTokens, type PagePosition, queryText } from "../../src/domain/page.ts";
import { equalBytes, loadKeys } from "../../src/keys.ts";
import { DATABASE_FILE } from "../../src/store/sqlite/open.ts";
import type { Seeded } from "../data/seed.ts";
import type { LoadRequest } from "../load/task.ts";
import type { PageOrder } from "./grown-server.ts";

/** Returns requests for pages of 25 projects of the large organization after these positions. */
export function middlePages(
  data: Seeded,
  order: PageOrder,
  positions: readonly PagePosition[],
): LoadRequest[] {
  const { pageMac } = loadKeys(join(data.dataDir, "key.json"));
  const direction = order === "id" ? "asc" : "desc";
  const query = queryText("ListProjects", data.organizationId, undefined, [order, direction]);
  const tokens = createPageTokens(pageMac, equalBytes);
  return positions.map((position) => ({
    operation: "ProjectService/ListProjects",
    body: JSON.stringify({
      pagination: { pageSize: 25, token: tokens.issue(query, position) },
      sort: { field: order },
    }),
  }));
}

/** Reads fifty positions between two fifths and three fifths of the projects from a data folder. */
export function middleInFolder({ dataDir, organizationId }: Seeded, order: PageOrder): PagePosition[] {
  const db = new Database(join(dataDir, DATABASE_FILE), { readonly: true });
  const by = order === "id" ? "id" : "popularity desc, id";
  const all = db
    .prepare<[string], { id: string; popularity: number }>(
      `select id, popularity from project where organization_id = ? order by ${by}`,
    )
    .all(organizationId);
  db.close();
  return middleOf(all, order);
}

/** Returns the positions of fifty rows in the middle of sorted rows. */
export function middleOf(
  all: readonly { readonly id: string; readonly popularity: number }[],
  order: PageOrder,
): PagePosition[] {
  const first = Math.floor(all.length * 0.4);
  const step = Math.floor((all.length * 0.2) / 50);
  return Array.from({ length: 50 }, (_, index) => all[first + index * step]).flatMap((row) =>
    row ? [{ key: order === "id" ? 0 : row.popularity, id: row.id }] : [],
  );
}

import { afterAll, beforeAll, expect, test } from "@jest/globals";
import pg from "pg";
import { findProjects } from "../../src/store/postgres/project-search.ts";
import type { ProjectOrder } from "../../src/store/project/project-page.ts";
import type { Store } from "../../src/store/store.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase, openProcess } from "../harness/postgres-store.ts";

const COUNT = 60;
const LIMIT = 7;

/** Projects of two organizations with the same texts; only some scores differ, so that orders have ties. */
const projects = ["one", "other"].flatMap((organizationId) =>
  Array.from({ length: COUNT }, (_, index) => ({
    id: `${organizationId}-${String(index).padStart(3, "0")}`,
    organizationId,
    popularity: index % 4,
    text: `${index % 2 ? "gateway" : "harbour"} ${index % 20 ? "plain" : "quärtz"} 100%_${index}`,
  })),
);

/** Ways that a search takes: all by the walk, then by the index, then by neither. */
const BOUNDS = [
  { walk: 1_000, few: 1_000 },
  { walk: 5, few: 1_000 },
  { walk: 5, few: 1 },
];

const ORDERS = (["id", "popularity"] as const).flatMap((field) =>
  (["asc", "desc"] as const).map((direction): ProjectOrder => ({ field, direction })),
);

let cluster: PostgresCluster;
let store: Store;
beforeAll(async () => {
  cluster = await startPostgres("embedded", ["fsync=off"]);
  const url = await emptyDatabase(cluster);
  store = await openProcess(url);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("set session_replication_role = replica");
  for (const { id, organizationId, popularity, text } of projects) {
    await client.query(
      `insert into project (id, organization_id, creator_id, desired_phase, popularity, search_text,
        technical_description, used_by, body) values ($1, $2, 'nobody', 1, $3, $4, '', '{}', '{}')`,
      [id, organizationId, popularity, text],
    );
  }
  await client.end();
});
afterAll(async () => {
  await store?.close();
  await cluster?.stop();
});

/** The pages of a search, one after the other. */
async function pagesOf(search: string, order: ProjectOrder, bounds: (typeof BOUNDS)[number]) {
  const filter = {
    search,
    projectIds: [],
    runnerIds: [],
    runnerKinds: [],
    remoteUris: [],
    creatorIds: [],
    annotations: {},
  };
  const ids: string[] = [];
  for (let after: { key: number; id: string } | undefined; ; ) {
    const page = { filter, order, after, limit: LIMIT, countLimit: COUNT };
    const { rows, count } = await findProjects(store.reader, { organizationId: "one" }, page, bounds);
    ids.push(...rows.map(({ id }) => id));
    const last = rows.at(-1);
    if (!last || rows.length < LIMIT) return { ids, count };
    after = { key: order.field === "id" ? 0 : last.popularity, id: last.id };
  }
}

/** The same by testing every text. */
function expected(search: string, { field, direction }: ProjectOrder): string[] {
  const sign = direction === "asc" ? 1 : -1;
  return projects
    .filter(({ organizationId, text }) => organizationId === "one" && text.includes(search))
    .sort((one, other) => {
      const byId = one.id < other.id ? -1 : 1;
      return field === "id" ? sign * byId : sign * (one.popularity - other.popularity || -byId);
    })
    .map(({ id }) => id);
}

test.each(["gateway", "quärtz", "ä", "7", "%", "_1", "y p", "no such", "zz", ""])(
  "a search for '%s' finds the same in every way, order and page",
  async (search) => {
    for (const order of ORDERS) {
      for (const bounds of BOUNDS) {
        const ids = expected(search, order);
        expect(await pagesOf(search, order, bounds)).toEqual({ ids, count: ids.length });
      }
    }
  },
);

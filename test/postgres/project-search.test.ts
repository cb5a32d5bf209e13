import { afterAll, beforeAll, expect, test } from "@jest/globals";
import pg from "pg";
import { gramQuery } from "../../src/store/postgres/search/project-grams.ts";
import { findProjects } from "../../src/store/postgres/search/project-search.ts";
import type { ProjectOrder } from "../../src/store/project/project-page.ts";
import type { Store } from "../../src/store/store.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase, onCluster, openProcess } from "../harness/postgres-store.ts";

const COUNT = 60;
const LIMIT = 7;

/** Projects of two organizations with the same texts; only some scores differ, so that orders have ties. */
const projects = ["one", "other"].flatMap((organizationId) =>
  Array.from({ length: COUNT }, (_, index) => ({
    id: `${organizationId}-${String(index).padStart(3, "0")}`,
    organizationId,
    popularity: index % 4,
    text: `${index % 2 ? "gateway" : "harbour"} ${index % 20 ? "plain" : "quärtz"} 100%_${index}${index % 9 ? "" : " it's \\\\ 🐧--"}`,
  })),
);

/** Ways that a search takes: the walk, the index, a longer walk, the index again, and none of them. */
const BOUNDS = [
  { walk: 1_000, few: 1_000, farWalk: 1_000, many: 1_000 },
  { walk: 5, few: 1_000, farWalk: 1_000, many: 1_000 },
  { walk: 5, few: 1, farWalk: 1_000, many: 1_000 },
  { walk: 5, few: 1, farWalk: 5, many: 1_000 },
  { walk: 5, few: 1, farWalk: 5, many: 1 },
];

const ORDERS = (["id", "popularity"] as const).flatMap((field) =>
  (["asc", "desc"] as const).map((direction): ProjectOrder => ({ field, direction })),
);

let cluster: PostgresCluster;
let store: Store;
let url: string;
beforeAll(async () => {
  cluster = await startPostgres("embedded", ["fsync=off"]);
  url = await emptyDatabase(cluster);
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

const SEARCHES = [
  ..."ä7%_-qz' ",
  ...["_1", "y ", "zz", "--", "e-", "-0", "äq"],
  ...["gateway", "quärtz", "y p", "no such", "100%", "it's", "\\\\", "harbour quärtz 100%_40", ""],
];

test.each(SEARCHES)("a search for '%s' finds the same in every way, order and page", async (search) => {
  for (const order of ORDERS) {
    for (const bounds of BOUNDS) {
      const ids = expected(search, order);
      expect(await pagesOf(search, order, bounds)).toEqual({ ids, count: ids.length });
    }
  }
});

const planOf = async (search: string) => {
  const query = gramQuery("one", search);
  const { rows } = await onCluster(
    url,
    `explain select id from project where project_grams(organization_id, search_text) @@ ${pg.escapeLiteral(query ?? "")}::tsquery limit 10`,
  );
  return rows.map((row) => row["QUERY PLAN"]).join("\n");
};

test.each(["harbour", "ä", "e q", "'"])(
  "the index of texts is asked for '%s', however few rows there are",
  async (search) => {
    expect(await planOf(search)).toContain("Bitmap Index Scan on project_by_grams");
  },
);

test.each(["a", "7f", "-", "-a", "0-"])("no index is asked for '%s', which most ids contain", (search) => {
  expect(gramQuery("one", search)).toBeUndefined();
});

test("the pieces of a text lead to no project of another organization", async () => {
  const { rows } = await onCluster(
    url,
    `select organization_id from project
    where project_grams(organization_id, search_text) @@ ${pg.escapeLiteral(gramQuery("one", "gateway") ?? "")}::tsquery`,
  );
  expect(rows).toHaveLength(COUNT / 2);
  expect(new Set(rows.map(({ organization_id: owner }) => owner))).toEqual(new Set(["one"]));
});

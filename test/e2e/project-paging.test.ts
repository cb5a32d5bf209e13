import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type Answer, post, reasonOf, repository } from "../harness/call.ts";
import { addOrganization } from "../harness/organization.ts";
import { fetchAllPages } from "../harness/project-pages.ts";
import { withRawData } from "../harness/raw-data.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { until } from "../harness/until.ts";

let server: ReachableServer;
let otherToken: string;
beforeAll(async () => {
  server = await startHostedServer({ args: ["--popularity-interval", "1", "--removal-interval", "1"] });
  otherToken = (await addOrganization(server, "neighbour")).token;
});
afterAll(stopAll);

const call = (operation: string, body: object, token = server.token) => post(server, operation, body, token);
const list = (body: object, token?: string) => call("ProjectService/ListProjects", body, token);
const idsOf = (page: Answer["body"]): string[] => page.projects.map(({ id }: { id: string }) => id);

/** Projects that carry the annotation `set`, so that each test has a list of its own. */
async function createSet(set: string, count: number, token?: string): Promise<string[]> {
  const projects = Array.from({ length: count }, (_, index) => ({
    name: `${set} ${index}`,
    initializer: repository(`https://git.example.org/${set}/${index}.git`),
    annotations: { set },
  }));
  const { body } = await call("ProjectService/CreateProjects", { projects }, token);
  return body.createdProjects.map(({ id }: { id: string }) => id);
}

const isGone = async (projectId: string) =>
  (await call("ProjectService/GetProject", { projectId })).status === 404;
/** How many environments do not count in their project's score yet; no answer of the server tells. */
const uncounted = () =>
  withRawData(server.dataDir, (raw) => raw.rows("select id from environment where counted = 0"));
const untilRefreshed = () => until(uncounted, ({ length }) => length === 0);
const use = (projectId: string) => call("EnvironmentService/CreateEnvironmentFromProject", { projectId });

describe("pages by id, while others insert and delete between them", () => {
  test.each(["SORT_ORDER_ASC", "SORT_ORDER_DESC"])("repeat no row and leave none out: %s", async (order) => {
    const set = `by-id-${order}`;
    const before = await createSet(set, 100);
    const query = { filter: { annotations: { set } }, sort: { field: "id", order } };
    const deleted = new Set<string>();
    const inserted = new Set<string>();
    const seen: string[] = [];
    let token = "";
    for (let page = 0; page === 0 || token !== ""; page++) {
      const { body } = await list({ ...query, pagination: { pageSize: 7, token } });
      seen.push(...idsOf(body));
      token = body.pagination.nextToken;
      if (inserted.size < 30) for (const id of await createSet(set, 3)) inserted.add(id);
      // One that was seen, the row that the token points to, and one that is still to come.
      const ahead = before.filter((id) => !seen.includes(id) && !deleted.has(id));
      const [victim] = order === "SORT_ORDER_ASC" ? ahead.slice(3) : ahead.slice(0, -3).reverse();
      const going = [seen.at(-3), seen.at(-1), victim].filter((id) => id !== undefined);
      for (const projectId of going) {
        if (!deleted.has(projectId)) await call("ProjectService/DeleteProject", { projectId });
        deleted.add(projectId);
      }
      if (page % 4 === 1)
        await until(
          () => Promise.all(going.map(isGone)),
          (gone) => gone.every(Boolean),
        );
    }
    const lasting = before.filter((id) => !deleted.has(id));
    expect(lasting.length).toBeGreaterThan(30);
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen).toEqual(expect.arrayContaining(lasting));
    expect(seen).toEqual(order === "SORT_ORDER_ASC" ? seen.toSorted() : seen.toSorted().reverse());
    const late = seen.filter((id) => inserted.has(id));
    if (order === "SORT_ORDER_ASC") expect(late.length).toBeGreaterThan(20);
    else expect(late).toEqual([]);
  });
});

describe("pages by popularity, while scores are refreshed between them", () => {
  test.each(["SORT_ORDER_DESC", "SORT_ORDER_ASC"])(
    "move only rows whose score was refreshed: %s",
    async (order) => {
      const set = `by-popularity-${order}`;
      const ids = await createSet(set, 60);
      const query = { filter: { annotations: { set } }, sort: { field: "popularity", order } };
      for (const id of ids.slice(0, 25)) await use(id);
      await untilRefreshed();

      const [quiet = []] = (await fetchAllPages(server, server.token, query, 100)).map(idsOf);
      const refreshed = new Set<string>();
      const seen: string[] = [];
      let token = "";
      do {
        const { body } = await list({ ...query, pagination: { pageSize: 12, token } });
        seen.push(...idsOf(body));
        token = body.pagination.nextToken;
        // One that was seen rises, and so does one that is still to come.
        const rising = [seen.at(-2), quiet.findLast((id) => !seen.includes(id))].filter(
          (id) => id !== undefined,
        );
        for (const id of rising) {
          await use(id);
          refreshed.add(id);
        }
        await untilRefreshed();
      } while (token !== "");
      const still = (id: string) => !refreshed.has(id);
      expect(refreshed.size).toBeGreaterThan(4);
      expect(seen.filter(still)).toEqual(quiet.filter(still));
    },
  );
});

describe("a page token", () => {
  const base = (ids: readonly string[]) => ({
    filter: {
      projectIds: ids,
      search: "tokens",
      annotations: { set: "tokens" },
      specRemoteUris: ids.map((_, index) => `https://git.example.org/tokens/${index}.git`),
    },
    sort: { field: "id", order: "SORT_ORDER_ASC" },
  });
  let ids: string[];
  let token: string;
  const paged = (query: object, page: object, bearer?: string) =>
    list({ ...query, pagination: page }, bearer);
  const expectRefused = (answer: Answer) => {
    expect([answer.status, answer.body.code, reasonOf(answer)]).toEqual([
      400,
      "invalid_argument",
      "PAGE_TOKEN_INVALID",
    ]);
  };
  beforeAll(async () => {
    ids = await createSet("tokens", 12);
    token = (await paged(base(ids), { pageSize: 5 })).body.pagination.nextToken;
    expect(token).not.toBe("");
  });

  test("goes on with its own query, whatever the page size, the letters of ids and the count", async () => {
    expect(idsOf((await paged(base(ids), { pageSize: 3, token })).body)).toEqual(ids.slice(5, 8));
    const upper = base(ids.map((id) => id.toUpperCase()));
    expect(idsOf((await paged({ ...upper, count: { include: true } }, { token })).body)).toEqual(
      ids.slice(5),
    );
    expect((await paged({ ...upper, count: { include: true } }, { token })).body.count).toBeUndefined();
  });

  test.each([
    [{}, { filter: {} }],
    [{ filter: { search: "", projectIds: [] } }, {}],
  ])("of %j goes on with %j, which is the same query", async (first, next) => {
    const { body } = await paged(first, { pageSize: 1 });
    const answer = await paged(next, { pageSize: 1, token: body.pagination.nextToken });
    expect([answer.status, answer.body.projects]).toEqual([200, [expect.anything()]]);
  });

  test("goes on with the same annotations in another order", async () => {
    const query = (annotations: object) => ({ filter: { annotations } });
    for (const [one, other] of [
      [
        { a: "1", set: "tokens" },
        { set: "tokens", a: "1" },
      ],
    ]) {
      const initializer = repository("https://git.example.org/ordered.git");
      for (let i = 0; i < 2; i++)
        await call("ProjectService/CreateProject", { initializer, annotations: { ...one } });
      const { body } = await paged(query({ ...one }), { pageSize: 1 });
      const next = await paged(query({ ...other }), { pageSize: 1, token: body.pagination.nextToken });
      expect([next.status, idsOf(next.body).length]).toEqual([200, 1]);
    }
  });

  test.each<[string, (query: ReturnType<typeof base>) => object]>([
    [
      "other ids",
      ({ filter, sort }) => ({ filter: { ...filter, projectIds: filter.projectIds.slice(1) }, sort }),
    ],
    ["another search", ({ filter, sort }) => ({ filter: { ...filter, search: "token" }, sort })],
    [
      "the search in other letters",
      ({ filter, sort }) => ({ filter: { ...filter, search: "TOKENS" }, sort }),
    ],
    [
      "a runner",
      ({ filter, sort }) => ({ filter: { ...filter, runnerIds: filter.projectIds.slice(0, 1) }, sort }),
    ],
    [
      "a kind of runner",
      ({ filter, sort }) => ({ filter: { ...filter, runnerKinds: ["RUNNER_KIND_REMOTE"] }, sort }),
    ],
    [
      "other remotes",
      ({ filter, sort }) => ({ filter: { ...filter, specRemoteUris: filter.specRemoteUris.slice(1) }, sort }),
    ],
    [
      "a creator",
      ({ filter, sort }) => ({ filter: { ...filter, creatorIds: filter.projectIds.slice(0, 1) }, sort }),
    ],
    [
      "another annotation",
      ({ filter, sort }) => ({ filter: { ...filter, annotations: { set: "other" } }, sort }),
    ],
    [
      "one more annotation",
      ({ filter, sort }) => ({ filter: { ...filter, annotations: { set: "tokens", more: "" } }, sort }),
    ],
    ["no filter", ({ sort }) => ({ sort })],
    [
      "another field of the order",
      ({ filter, sort }) => ({ filter, sort: { ...sort, field: "popularity" } }),
    ],
    ["another direction", ({ filter, sort }) => ({ filter, sort: { ...sort, order: "SORT_ORDER_DESC" } })],
    ["no order", ({ filter }) => ({ filter })],
  ])("is refused with %s", async (_, change) => {
    expectRefused(await paged(change(base(ids)), { pageSize: 5, token }));
  });

  test("is refused in another organization, also with the very same query", async () => {
    expectRefused(await paged(base(ids), { pageSize: 5, token }, otherToken));
    await createSet("everywhere", 3);
    await createSet("everywhere", 3, otherToken);
    const query = { filter: { search: "everywhere" }, sort: { field: "id" } };
    const { body } = await paged(query, { pageSize: 1 });
    expect((await paged(query, { pageSize: 1, token: body.pagination.nextToken })).status).toBe(200);
    expectRefused(await paged(query, { pageSize: 1, token: body.pagination.nextToken }, otherToken));
  });

  test("is refused by every other list, and theirs by this one", async () => {
    for (let i = 0; i < 2; i++) {
      await call("RunnerService/CreateRunner", { name: `runner ${i}` });
      await call("EnvironmentService/CreateEnvironment", {});
      await call("UserService/CreatePersonalAccessToken", { description: "one more" });
    }
    const pagination = { pageSize: 1 };
    const own = (await list({ pagination })).body.pagination.nextToken;
    const lists = [
      ["ProjectService/ListProjectEnvironmentClasses", { projectId: ids[0] }],
      ["EnvironmentService/ListEnvironments", {}],
      ["RunnerService/ListRunners", {}],
      ["RunnerConfigurationService/ListEnvironmentClasses", {}],
      ["UserService/ListPersonalAccessTokens", {}],
    ] as const;
    for (const [operation, body] of lists) {
      expectRefused(await call(operation, { ...body, pagination: { pageSize: 1, token: own } }));
      const theirs = (await call(operation, { ...body, pagination })).body.pagination.nextToken;
      if (theirs) expectRefused(await list({ pagination: { pageSize: 1, token: theirs } }));
    }
  });

  test("is refused with any character changed, taken away or added", async () => {
    for (let place = 0; place < token.length; place++) {
      const changed = [...token].with(place, token[place] === "A" ? "B" : "A").join("");
      expectRefused(await paged(base(ids), { token: changed }));
      expectRefused(await paged(base(ids), { token: token.slice(0, place) + token.slice(place + 1) }));
    }
    // The last character has bits that no byte uses: a change of those alone is a change too.
    for (const letter of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") {
      if (!token.endsWith(letter))
        expectRefused(await paged(base(ids), { token: token.slice(0, -1) + letter }));
    }
    for (const added of [`${token}=`, `${token}A`, ` ${token}`, `${token}\n`, "null", "0", "é"]) {
      expectRefused(await paged(base(ids), { token: added }));
    }
  });

  test("of 4,096 characters is judged, and a longer one breaks a rule", async () => {
    expectRefused(await paged(base(ids), { token: token.padEnd(4_096, "A") }));
    const longer = await paged(base(ids), { token: token.padEnd(4_097, "A") });
    expect([longer.status, longer.body.code, reasonOf(longer)]).toEqual([
      400,
      "invalid_argument",
      "CONSTRAINT_VIOLATED",
    ]);
  });
});

import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { ProjectSchema } from "#gen/service/v1/project_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import type { PagePosition } from "../../../src/domain/page.ts";
import { fold } from "../../../src/domain/text/fold.ts";
import { insertProject, removeProject, updateProject } from "../../../src/store/project/project.ts";
import type { ProjectFilter } from "../../../src/store/project/project-filter.ts";
import { findProjectPage } from "../../../src/store/project/project-list.ts";
import type { ProjectOrder, ProjectPage } from "../../../src/store/project/project-page.ts";
import { findLocalRunnerId } from "../../../src/store/runner/runner.ts";
import { openConnection } from "../../../src/store/sqlite/connection.ts";
import { DATABASE_FILE } from "../../../src/store/sqlite/open.ts";
import { searchProjects } from "../../../src/store/sqlite/search/project-search.ts";
import { type Scope, SYSTEM } from "../../../src/store/store.ts";
import { testOnSqlite } from "../../harness/engine.ts";
import { postgresUrl } from "../../harness/postgres-database.ts";
import { createRandom } from "../../harness/random.ts";
import { replay } from "../../harness/seed.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import { ANY_PROJECT } from "./any-project.ts";

let made: TestStore;
let own: Caller;
let stranger: Caller;
beforeAll(async () => {
  made = openTestStore();
  own = await made.createOrganization("harbour");
  stranger = await made.createOrganization("island");
  await fill(own, 400);
  await fill(stranger, 100);
});
afterAll(() => {
  for (const connection of opened) connection.close();
  return made.close();
});

/** What a project is listed by. */
interface Known {
  readonly id: string;
  readonly text: string;
  readonly popularity: number;
  readonly remotes: readonly string[];
  readonly team: string;
}
const known = new Map<string, Known[]>();

const PARTS = [
  "pay",
  "ment",
  "zz",
  "a",
  "-",
  " ",
  '"',
  "'",
  "*",
  "%",
  "_",
  "\\",
  "\0",
  "é",
  "ß",
  "ﬀ",
  "🐧",
  "𐐀",
  "東京",
  "\ue02d",
  "(",
  "NEAR",
  "AND",
];

const REMOTES = ["one", "two", "three"].map((name) => `https://git.example.org/team/${name}.git`);

/** Projects with few different parts and few different scores, renamed and removed now and then. */
async function fill(caller: Caller, count: number): Promise<void> {
  const random = createRandom(count);
  const name = () => Array.from({ length: random.integer(1, 6) }, () => random.pick(PARTS)).join("");
  const all: Known[] = [];
  for (let index = 0; index < count; index++) {
    const id = made.newId();
    const remotes = random.some(REMOTES, random.integer(0, 3));
    const team = random.pick(["north", "south"]);
    const specs = remotes.map((remoteUri) => ({ spec: { case: "git" as const, value: { remoteUri } } }));
    const named = () =>
      create(ProjectSchema, {
        id,
        desiredPhase: 1,
        metadata: { name: name(), annotations: { team } },
        initializer: { specs },
      });
    let project = named();
    await made.store.write(SYSTEM, "test", async (tx) => {
      await insertProject(tx, caller, project);
      if (!random.chance(0.3)) return;
      const before = project;
      project = named();
      await updateProject(tx, caller, before, project);
    });
    if (random.chance(0.1)) {
      await made.store.write(SYSTEM, "test", (tx) => removeProject(tx, caller, project));
      continue;
    }
    const popularity = random.integer(0, 5) / 4;
    await made.store.note("project", id, { popularity });
    const repositories = remotes.map((uri) => uri.slice(uri.lastIndexOf("/") + 1, -".git".length));
    const text = fold([project.metadata?.name, id, ...repositories].join("\n"));
    all.push({ id, text, popularity, remotes, team });
  }
  known.set(caller.organizationId, all);
}

const never = new AbortController().signal;

/** Where a page comes from. */
type Source = (caller: Caller, page: ProjectPage) => ReturnType<typeof findProjectPage>;

/** As it is served. */
const served: Source = (caller, page) => findProjectPage(made.store, caller, page, () => never);

/** The ways that many rows take on SQLite, although here are few. @param walks whether walks come to an end */
function common(walks: boolean): Source {
  const { raw, db } = openConnection(join(made.dataDir, DATABASE_FILE), "reader");
  raw.function("in_time", () => 1);
  opened.push(raw);
  const attempt = async <T>(_: number, query: () => Promise<T>) => (walks ? query() : undefined);
  const find = (scope: Scope, page: ProjectPage) =>
    searchProjects(db, scope, page, { attempt }, { few: 0, rare: 20 });
  return (caller, page) =>
    findProjectPage({ reader: db, projectSearch: { find } }, caller, page, () => never);
}
const opened: { close(): void }[] = [];

/** The ids of every page, and what was counted on the first. */
async function pages(
  source: Source,
  caller: Caller,
  filter: ProjectFilter,
  order: ProjectOrder,
  size: number,
  countLimit: number | undefined,
) {
  const ids: string[] = [];
  let after: PagePosition | undefined;
  let count: number | undefined;
  do {
    const page = { filter, order, after, limit: size + 1, countLimit: after ? undefined : countLimit };
    const found = await source(caller, page);
    count ??= found.count;
    ids.push(...found.projects.slice(0, size).map(({ position }) => position.id));
    after = found.projects.length > size ? found.projects[size - 1]?.position : undefined;
  } while (after);
  return { ids, count };
}

function expected(caller: Caller, filter: ProjectFilter, { field, direction }: ProjectOrder) {
  const { search, projectIds, remoteUris, annotations, creatorIds } = filter;
  const found = (known.get(caller.organizationId) ?? []).filter(
    ({ id, text, remotes, team }) =>
      text.split("\n").some((line) => line.includes(search)) &&
      (projectIds.length === 0 || projectIds.includes(id)) &&
      (remoteUris.length === 0 || remotes.some((uri) => remoteUris.includes(uri))) &&
      (annotations.team === undefined || annotations.team === team) &&
      (creatorIds.length === 0 || creatorIds.includes("")),
  );
  const sign = direction === "asc" ? 1 : -1;
  const byId = (one: Known, other: Known) => (one.id < other.id ? -1 : 1);
  return found
    .sort((one, other) =>
      field === "id"
        ? sign * byId(one, other)
        : sign * (one.popularity - other.popularity || byId(other, one)),
    )
    .map(({ id }) => id);
}

const orders = fc.record({
  field: fc.constantFrom("id" as const, "popularity" as const),
  direction: fc.constantFrom("asc" as const, "desc" as const),
});

const terms = fc.oneof(
  fc
    .array(fc.constantFrom(...PARTS, "\n", "0", "-7"), { minLength: 1, maxLength: 4 })
    .map((parts) => parts.join("")),
  // A part of a text that is there.
  fc.tuple(fc.nat(), fc.nat(), fc.integer({ min: 1, max: 8 })).map(([which, start, length]) => {
    const all = known.get(own.organizationId) ?? [];
    const characters = [...(all[which % all.length]?.text ?? "")];
    return characters.slice(start % characters.length, (start % characters.length) + length).join("");
  }),
  fc.string({ unit: "binary", minLength: 1, maxLength: 4 }),
);

describe("a search", () => {
  test("finds what contains the text, and nothing of another organization, page by page", async () => {
    const sources: Record<string, Source> = {
      served,
      ...(postgresUrl() === undefined && { walking: common(true), "by the index": common(false) }),
    };
    const property = fc.asyncProperty(
      fc.oneof(terms, fc.constant("")),
      orders,
      fc.constantFrom(1, 2, 7, 100),
      fc.boolean(),
      fc.record({
        isNarrow: fc.boolean(),
        remoteUris: fc.oneof(fc.constant([]), fc.subarray(REMOTES)),
        annotations: fc.constantFrom({}, {}, { team: "north" }, { team: "nowhere" }),
        // Nobody is said to have made these projects, which is stored as an empty text.
        creatorIds: fc.constantFrom([], [], [""], ["a stranger"]),
      }),
      fc.constantFrom(...Object.keys(sources)),
      fc.constantFrom(20, undefined),
      async (term, order, size, isStranger, others, way, countLimit) => {
        const caller = isStranger ? stranger : own;
        const ids = [...known.values()].flat().map(({ id }) => id);
        const projectIds = others.isNarrow ? ids.filter((_, index) => index % 3 === 0) : [];
        const { remoteUris, annotations, creatorIds } = others;
        const filter = {
          ...ANY_PROJECT,
          search: fold(term),
          projectIds,
          remoteUris,
          annotations,
          creatorIds,
        };
        const wanted = expected(caller, filter, order);
        const found = await pages(
          sources[way] ?? served,
          caller,
          filter,
          order,
          wanted.length > 50 ? 100 : size,
          countLimit,
        );
        expect(found).toEqual({ ids: wanted, count: countLimit && Math.min(wanted.length, countLimit) });
      },
    );
    await fc.assert(property, { numRuns: 600, ...replay });
  });

  test.each(["id", "popularity"] as const)(
    "and a list without a filter go through all pages by %s, ties and all",
    async (field) => {
      for (const direction of ["asc", "desc"] as const) {
        const order = { field, direction };
        const wanted = expected(own, ANY_PROJECT, order);
        expect(await pages(served, own, ANY_PROJECT, order, 7, 1000)).toEqual({
          ids: wanted,
          count: wanted.length,
        });
      }
    },
  );
});

testOnSqlite("a function that the engine calls for each row counts them")(
  "a search tests no row of another organization, however many have the values that it asks for",
  async () => {
    const apart = openTestStore();
    const { raw, db, close } = openConnection(join(apart.dataDir, DATABASE_FILE), "reader");
    let asked = 0;
    // Every row that is tested asks, not one of 64.
    raw.function("random", () => 0);
    raw.function("in_time", () => ++asked);
    const small = await apart.createOrganization("harbour");
    const large = await apart.createOrganization("island");
    const insert = (caller: Caller, count: number) =>
      apart.store.write(SYSTEM, "test", async (tx) => {
        const specs = [
          { spec: { case: "git" as const, value: { remoteUri: "https://git.example.org/a.git" } } },
        ];
        for (let index = 0; index < count; index++) {
          const project = create(ProjectSchema, {
            id: apart.newId(),
            desiredPhase: 1,
            metadata: { annotations: { team: "north" } },
            initializer: { specs },
            environmentClasses: [{ environmentClass: { case: "localRunner", value: true } }],
          });
          await insertProject(tx, caller, project);
        }
      });
    const runnerIds = await Promise.all([small, large].map((caller) => findLocalRunnerId(db, caller)));
    const filters: Partial<ProjectFilter>[] = [
      { annotations: { team: "north" } },
      { remoteUris: ["https://git.example.org/a.git"] },
      { runnerIds },
    ];
    /** How many rows a page with a count tests by each filter, as leads of few rows and of many are followed. */
    const tested = async () => {
      const counts: number[] = [];
      for (const filter of filters) {
        const page = {
          filter: { ...ANY_PROJECT, ...filter },
          order: { field: "id", direction: "asc" },
          after: undefined,
          limit: 1,
          countLimit: 10,
        } as const;
        for (const few of [3_000, 0]) {
          asked = 0;
          const limit = { attempt: async () => undefined };
          const { rows, count } = await searchProjects(db, small, page, limit, { few, rare: 20 });
          expect([rows.length, count]).toEqual([1, 1]);
          counts.push(asked);
        }
      }
      return counts;
    };
    try {
      await insert(small, 1);
      const alone = await tested();
      expect(Math.min(...alone)).toBeGreaterThan(0);
      await insert(large, 2_000);
      expect(await tested()).toEqual(alone);
    } finally {
      close();
      await apart.close();
    }
  },
);

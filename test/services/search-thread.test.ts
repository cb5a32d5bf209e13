import { readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { constants, getPriority } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import Database from "better-sqlite3";
import { sql } from "kysely";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Caller } from "../../src/domain/identity/caller.ts";
import { checkDeadline } from "../../src/store/expressions.ts";
import type { ProjectPage } from "../../src/store/project/project-page.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import { openConnection } from "../../src/store/sqlite/connection.ts";
import { DATABASE_FILE, type SqliteStore } from "../../src/store/sqlite/open.ts";
import { Searches } from "../../src/store/sqlite/search/search-thread.ts";
import { listing } from "../../src/store/sqlite/search/searching.ts";
import { StoreUnavailable } from "../../src/store/store.ts";
import { openTestStore, type TestStore } from "../harness/test-store.ts";
import { ANY_PROJECT } from "../store/project/any-project.ts";
import { servicesOf } from "./services.ts";

let made: TestStore;
let caller: Caller;
const open: Searches[] = [];
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((searches) => searches.close()));
  await made.close();
});

const ship: ProjectPage = {
  filter: { ...ANY_PROJECT, search: "ship" },
  order: { field: "id", direction: "asc" },
  after: undefined,
  limit: 10,
  countLimit: undefined,
};

/** With more time for a search than a process stalls, unless given otherwise. */
function searchesOf(file: string, limitMs = 60_000, crowdedMs?: number): Searches {
  const searches = new Searches(file, limitMs, crowdedMs);
  open.push(searches);
  return searches;
}

const ownFile = () => join(made.dataDir, DATABASE_FILE);
const outcome = (promise: Promise<unknown>) =>
  promise.then(
    () => "found",
    (error) => error,
  );

/** So many projects that a look at each asks for the time more than once. */
function fill(count: number): void {
  const raw = new Database(ownFile());
  const insert = raw.prepare(`insert into project
    (id, organization_id, creator_id, desired_phase, search_text, technical_description, used_by, body)
    values (?, ?, '', 1, '', '', '{}', '{}')`);
  raw.transaction(() => {
    for (let index = 0; index < count; index++) insert.run(made.newId(), caller.organizationId);
  })();
  raw.close();
}

test("a search that takes too long ends with what to do, and the next one is answered", async () => {
  await servicesOf(made, caller).project("ship");
  fill(4_000);
  const searches = searchesOf(ownFile(), 0);
  const wide = { ...ship, filter: { ...ship.filter, search: "", runnerKinds: [99] } };
  await expect(searches.search("projects", caller, wide)).rejects.toMatchObject({
    reason: ErrorReason.VALUE_UNUSABLE,
    metadata: { field: "filter" },
    message: expect.stringContaining("search for a longer text"),
  });
  const none = { ...ship, filter: { ...ship.filter, search: "no such text" } };
  expect(await searches.search("projects", caller, none)).toEqual({ rows: [], count: undefined });
});

test("a search that takes long lets those behind it go first, its own organization's and others', and is answered", async () => {
  const other = await made.createOrganization("island");
  for (const each of [other, caller]) await servicesOf(made, each).project("ship");
  fill(40_000);
  const searches = searchesOf(ownFile(), undefined, 0);
  const order: string[] = [];
  const search = (name: string, by: Caller, filter: Partial<ProjectPage["filter"]>) =>
    searches
      .search("projects", by, { ...ship, filter: { ...ANY_PROJECT, ...filter } })
      .then(({ rows }) => void order.push(`${name} ${rows.length}`));
  // Nothing but a look at each row tells that none is of this kind.
  const long = Array.from({ length: 3 }, () => search("long", caller, { runnerKinds: [99] }));
  const remoteUris = ["https://git.example.org/team/none.git"];
  const short = [search("other", other, { remoteUris }), search("own", caller, { remoteUris })];
  await Promise.all([...long, ...short]);
  expect(order.slice(0, 2).sort()).toEqual(["other 0", "own 0"]);
  expect(order.slice(2)).toEqual(["long 0", "long 0", "long 0"]);
});

test("a query of a list tests few rows on the main thread, and begins again as a search when they do not suffice", async () => {
  fill(20_000);
  const reading = openConnection(ownFile(), "reader");
  let tested = 0;
  reading.raw.function("tested", () => ++tested);
  const moved: object[] = [];
  const search = (async (...[, , parameters]) => {
    moved.push(parameters);
    return { rows: [{ id: "found" }] };
  }) as SqliteStore["search"];
  const projects = listing({ search }, reading, caller).selectFrom("project").select("id");
  const rare = projects.where(checkDeadline()).where(sql<boolean>`tested() < ${0}`);
  expect(await rare.execute()).toEqual([{ id: "found" }]);
  expect(moved).toEqual([{ sql: expect.stringContaining("tested() <"), values: [0] }]);
  // A thousand on average.
  expect(tested).toBeLessThan(4_000);
  expect(await projects.where(checkDeadline()).limit(101).execute()).toHaveLength(101);
  await expect(projects.execute()).rejects.toThrow("cannot be ended");
  expect(moved).toHaveLength(1);
  reading.close();
});

test("lists that come at once leave turns of the event loop to others", async () => {
  fill(1_000);
  const db = made.store.lister(caller);
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const query = builderOf(db)
    .selectFrom("project")
    .selectAll()
    .where(checkDeadline())
    .orderBy("id")
    .limit(100);
  await Promise.all(Array.from({ length: 500 }, () => query.execute()));
  isOver = true;
  expect(turns).toBeGreaterThan(1);
});

test("a search that cannot be handed to the thread fails alone, and the next one is answered", async () => {
  const id = await servicesOf(made, caller).project("ship");
  const searches = searchesOf(ownFile());
  const uncrossable = { ...ship, order: () => "id" } as unknown as ProjectPage;
  const [failed, found] = await Promise.all([
    outcome(searches.search("projects", caller, uncrossable)),
    searches.search("projects", caller, ship),
  ]);
  expect(failed).toBeInstanceOf(StoreUnavailable);
  expect(found.rows.map((row) => row.id)).toEqual([id]);
});

test("a project whose text an earlier release made in another way is found once it changes", async () => {
  const { projects, project } = servicesOf(made, caller);
  const id = await project("ship");
  const raw = new Database(ownFile());
  raw.prepare("update project set search_text = 'boat' where id = ?").run(id);
  raw.prepare("update project set search_row = null where id = ?").run(id);
  raw.close();
  await projects.updateProject({ projectId: id, devcontainerFilePath: "a.json" });
  const { rows } = await searchesOf(ownFile()).search("projects", caller, ship);
  expect(rows.map((row) => row.id)).toEqual([id]);
});

test("a search sees what was committed before", async () => {
  const { projects } = servicesOf(made, caller);
  const id = await servicesOf(made, caller).project("ship");
  const listed = await projects.listProjects({ filter: { search: "HIP" } });
  expect(listed.projects.map((project) => project.id)).toEqual([id]);
});

test("one organization may have 100 searches waiting, and others theirs at the same time", async () => {
  const other = await made.createOrganization("island");
  const searches = searchesOf(ownFile());
  const search = (by: Caller) => outcome(searches.search("projects", by, ship));
  // The first one runs, and waits no more.
  const own = Array.from({ length: 102 }, () => search(caller));
  const others = search(other);
  const outcomes = await Promise.all(own);
  expect(outcomes.slice(0, 101)).toEqual(Array(101).fill("found"));
  expect(outcomes[101]).toBeInstanceOf(StoreUnavailable);
  expect(await others).toBe("found");
});

describe("a search that nobody waits for any more", () => {
  test.each(["under way", "waiting"])("ends at once when it is %s, and others go on", async (place) => {
    const searches = searchesOf(ownFile());
    const before = place === "waiting" ? [outcome(searches.search("projects", caller, ship))] : [];
    const leaving = new AbortController();
    const left = outcome(searches.search("projects", caller, ship, leaving.signal));
    const behind = outcome(searches.search("projects", caller, ship));
    const reason = new Error("the client left");
    leaving.abort(reason);
    expect(await left).toBe(reason);
    expect(await Promise.all([...before, behind])).toEqual([...before.map(() => "found"), "found"]);
  });

  test("does not begin when it is over already", async () => {
    const reason = new Error("the client left");
    const over = searchesOf(ownFile()).search("projects", caller, ship, AbortSignal.abort(reason));
    expect(await outcome(over)).toBe(reason);
  });
});

test("a thread that ends fails the search under way only, and the next search starts another", async () => {
  const file = join(made.dataDir, "later.db");
  const searches = searchesOf(file);
  const failed = await outcome(searches.search("projects", caller, ship));
  expect(failed).toBeInstanceOf(StoreUnavailable);
  expect(String(failed.cause)).toContain("unable to open database file");
  new Database(ownFile()).prepare("vacuum into ?").run(file);
  expect(await outcome(searches.search("projects", caller, ship))).toBe("found");
});

test("a search whose transaction the engine ends tells the engine's failure, and the thread goes on", async () => {
  await servicesOf(made, caller).project("ship");
  const file = join(made.dataDir, "later.db");
  new Database(ownFile()).prepare("vacuum into ?").run(file);
  const searches = searchesOf(file);
  expect(await outcome(searches.search("projects", caller, ship))).toBe("found");
  // What the thread must read next is in the log, and that breaks off.
  const { raw, close } = openConnection(file, "writer");
  raw.exec("update project_search_range set last_row = last_row + 1");
  const log = `${file}-wal`;
  const whole = readFileSync(log);
  truncateSync(log, 32);
  const failed = await outcome(searches.search("projects", caller, ship));
  expect(String(failed)).toContain("disk I/O error");
  expect(failed).not.toBeInstanceOf(StoreUnavailable);
  writeFileSync(log, whole);
  expect(await outcome(searches.search("projects", caller, ship))).toBe("found");
  close();
});

test("closing ends what runs and refuses what waits and what comes", async () => {
  const searches = searchesOf(ownFile());
  const all = [1, 2, 3].map(() => outcome(searches.search("projects", caller, ship)));
  await searches.close();
  const [first, ...rest] = await Promise.all(all);
  if (first !== "found") expect(first).toBeInstanceOf(StoreUnavailable);
  for (const one of rest) expect(one).toBeInstanceOf(StoreUnavailable);
  expect(await outcome(searches.search("projects", caller, ship))).toBeInstanceOf(StoreUnavailable);
});

const onLinux = process.platform === "linux" ? test : test.skip; // Elsewhere threads have no priority of their own.

onLinux("the thread of searches, and no other, leaves the processor to the rest of the process", async () => {
  /** Of each thread: field 19 of its stat, the 17th behind the name in brackets. */
  const nicenesses = () =>
    readdirSync("/proc/self/task").map((thread) => {
      const stat = statOf(thread);
      return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[16]);
    });
  /** Empty for a thread that has ended since. */
  const statOf = (thread: string) => {
    try {
      return readFileSync(`/proc/self/task/${thread}/stat`, "utf8");
    } catch {
      return "";
    }
  };
  const nicer = Math.min(getPriority() + 5, constants.priority.PRIORITY_LOW);
  const lower = () => nicenesses().filter((niceness) => niceness === nicer).length;
  const before = lower();
  await searchesOf(ownFile()).search("projects", caller, ship);
  expect(lower()).toBe(before + 1);
});

import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { sql } from "kysely";
import { v7 } from "uuid";
import { insertOrganization } from "../../src/store/organization.ts";
import { DATABASE_FILE, openStore } from "../../src/store/sqlite/open.ts";
import {
  type Actor,
  type Change,
  NOTABLE_COLUMNS,
  OPERATOR,
  type Store,
  StoreUnavailable,
  SYSTEM,
  type WriteTransaction,
} from "../../src/store/store.ts";
import { endNodes, startNode } from "../harness/node-process.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";
import { AUDIT } from "./audit-seal.ts";

const ONE = "0192d3c0-0000-7000-8000-000000000001";
const TWO = "0192d3c0-0000-7000-8000-000000000002";
const ACTOR: Actor = { id: "0192d3c0-0000-7000-8000-0000000000aa", principal: 2 };

let dataDir: string;
let store: Store;
let now = 0;

const open = (grouping = true) => openStore({ dataDir, now: () => now, newId: v7, grouping, audit: AUDIT });

beforeEach(async () => {
  dataDir = temporaryFolder();
  now = Date.UTC(2026, 0, 1);
  store = open();
  for (const id of [ONE, TWO])
    await store.write(OPERATOR, "test", (tx) => insertOrganization(tx, { id, name: id }));
});
afterEach(() => store.close());
afterAll(async () => {
  await endNodes();
  await stopAll();
});

const change = (organizationId: string, id: string): Change => ({
  organizationId,
  type: "project",
  id,
  kind: "created",
  after: JSON.stringify({ id }),
});

/** Writes a row and the change of a made-up project, in one go. */
async function put(tx: WriteTransaction, name: string, organizationId = ONE): Promise<string> {
  await tx.db.insertInto("fact").values({ name, value: "" }).execute();
  tx.record(change(organizationId, name));
  return name;
}

const facts = async (from = store) =>
  (await from.reader.selectFrom("fact").select("name").orderBy("name").execute()).map(({ name }) => name);
const audit = (organizationId: string, from = store) =>
  from.reader
    .selectFrom("audit_log")
    .selectAll()
    .where("organization_id", "=", organizationId)
    .orderBy("sequence")
    .execute();
const events = (organizationId: string, from = store) =>
  from.reader
    .selectFrom("event")
    .selectAll()
    .where("organization_id", "=", organizationId)
    .orderBy("sequence")
    .execute();

/** Holds the audit log and the events of both organizations against each other and against their counters. */
async function expectWholeRecord(changed: Record<string, readonly string[]>): Promise<void> {
  for (const [organizationId, ids] of Object.entries(changed)) {
    const log = await audit(organizationId);
    expect(log.map(({ sequence }) => sequence)).toEqual(log.map((_, index) => index + 1));
    expect(log.slice(1).map(({ subject_id }) => subject_id)).toEqual(ids);
    expect(
      (await events(organizationId)).map((row) => [row.sequence, row.at, row.resource_type, row.resource_id]),
    ).toEqual(log.map((row) => [row.sequence, row.at, row.subject_type, row.subject_id]));
    const { sequence } = await store.reader
      .selectFrom("organization")
      .select("sequence")
      .where("id", "=", organizationId)
      .executeTakeFirstOrThrow();
    expect(sequence).toBe(log.length);
  }
}

describe.each([
  ["in groups", true],
  ["one by one", false],
])("writes that wait at the same time, committed %s", (_, grouping) => {
  beforeEach(async () => {
    await store.close();
    store = open(grouping);
  });

  test("are all there when they answer, in the order in which they were asked", async () => {
    const names = Array.from({ length: 300 }, (__, index) => `fact ${String(index).padStart(3, "0")}`);
    const answers = await Promise.all(
      names.map(async (name) => {
        const answer = await store.write(ACTOR, "test", (tx) => put(tx, name));
        expect(await facts()).toContain(name);
        return answer;
      }),
    );
    expect(answers).toEqual(names);
    await expectWholeRecord({ [ONE]: names, [TWO]: [] });
    // Not through this store: what another process would find.
    const other = open();
    expect(await facts(other)).toEqual(names);
    expect(await audit(ONE, other)).toHaveLength(names.length + 1);
    await other.close();
  });

  test("of which some fail leave nothing of those, and all of the others", async () => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 200 }, (__, index) =>
        store.write(ACTOR, "test", async (tx) => {
          const name = `fact ${String(index).padStart(3, "0")}`;
          await put(tx, name, index % 2 === 0 ? ONE : TWO);
          if (index % 3 === 0) throw new Error(`no ${index}`);
          if (index % 7 === 0) await tx.db.insertInto("fact").values({ name, value: "twice" }).execute();
          return name;
        }),
      ),
    );
    const kept = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    expect(kept).toHaveLength(200 - 67 - 19);
    expect(outcomes[3]).toMatchObject({ status: "rejected", reason: { message: "no 3" } });
    expect(outcomes[7]).toMatchObject({
      status: "rejected",
      reason: { code: "SQLITE_CONSTRAINT_PRIMARYKEY" },
    });
    expect(await facts()).toEqual(kept);
    const of = (rest: number) => kept.filter((name) => Number(name.slice(-3)) % 2 === rest);
    await expectWholeRecord({ [ONE]: of(0), [TWO]: of(1) });
  });
});

describe("a write", () => {
  test("records each change with who made it, by which operation, when, and what changed", async () => {
    now += 5;
    await store.write(ACTOR, "service.v1.ProjectService/UpdateProject", async (tx) => {
      expect(tx.now).toBe(now);
      tx.record({
        organizationId: ONE,
        type: "project",
        id: "p",
        kind: "updated",
        before: JSON.stringify({ name: "a", same: 1 }),
        after: JSON.stringify({ name: "b", same: 1 }),
        reason: "because",
      });
      tx.record({ ...change(TWO, "r"), type: "runner", kind: "deleted", before: "{}" });
    });
    expect((await audit(ONE))[1]).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      organization_id: ONE,
      sequence: 2,
      at: now,
      actor_id: ACTOR.id,
      actor_principal: 2,
      operation: "service.v1.ProjectService/UpdateProject",
      subject_type: "project",
      subject_id: "p",
      reason: "because",
      diff: '{"name":["a","b"]}',
    });
    expect((await events(ONE))[1]).toEqual({
      organization_id: ONE,
      sequence: 2,
      at: now,
      kind: "updated",
      resource_type: "project",
      resource_id: "p",
    });
    expect((await audit(TWO))[1]).toMatchObject({ sequence: 2, subject_type: "runner", reason: "" });
  });

  test("that changes nothing leaves no record", async () => {
    expect(await store.write(SYSTEM, "test", async () => "answer")).toBe("answer");
    await expectWholeRecord({ [ONE]: [], [TWO]: [] });
  });

  test("whose change names no organization fails, and leaves nothing", async () => {
    const failing = store.write(SYSTEM, "test", (tx) => put(tx, "fact", "none"));
    await expect(failing).rejects.toThrow("an organization that does not exist: none");
    expect(await facts()).toEqual([]);
  });

  test("sees what it has written, and nobody else does until it answers", async () => {
    await store.write(SYSTEM, "test", async (tx) => {
      await put(tx, "fact");
      expect(await tx.db.selectFrom("fact").select("name").execute()).toEqual([{ name: "fact" }]);
      expect(await facts()).toEqual([]);
    });
    expect(await facts()).toEqual(["fact"]);
  });

  test("may run several queries at once", async () => {
    await store.write(SYSTEM, "test", (tx) => Promise.all(["a", "b", "c"].map((name) => put(tx, name))));
    expect(await facts()).toEqual(["a", "b", "c"]);
    await expectWholeRecord({ [ONE]: ["a", "b", "c"] });
  });

  test("that catches the failure of a query goes on with the rest", async () => {
    await store.write(SYSTEM, "test", async (tx) => {
      await put(tx, "a");
      await tx.db
        .insertInto("fact")
        .values({ name: "a", value: "again" })
        .execute()
        .catch(() => undefined);
      await put(tx, "b");
    });
    expect(await facts()).toEqual(["a", "b"]);
  });

  test.each<[string, () => Promise<unknown>]>([
    ["a timer", () => new Promise((resolve) => setTimeout(resolve, 1))],
    ["the next turn of the event loop", () => new Promise((resolve) => setImmediate(resolve))],
    // Nobody listens there: what counts is that the answer comes from outside.
    ["the network", () => new Promise((resolve) => connect(9, "127.0.0.1").once("error", resolve))],
  ])("that awaits %s is rolled back and says why; the others of its commit stay", async (_, wait) => {
    const outcomes = await Promise.allSettled([
      store.write(SYSTEM, "test", (tx) => put(tx, "before")),
      store.write(SYSTEM, "test", async (tx) => {
        await put(tx, "early");
        await wait();
        await put(tx, "late");
      }),
      store.write(SYSTEM, "test", (tx) => put(tx, "behind")),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(outcomes[1]).toMatchObject({
      reason: { message: expect.stringContaining("awaited something other") },
    });
    expect(await facts()).toEqual(["before", "behind"]);
    await expectWholeRecord({ [ONE]: ["before", "behind"], [TWO]: [] });
  });

  test("does not begin when its signal is aborted before its turn", async () => {
    const controller = new AbortController();
    let began = false;
    const first = store.write(SYSTEM, "test", async (tx) => {
      controller.abort(new Error("the deadline passed"));
      await put(tx, "first");
    });
    const aborted = store.write(
      SYSTEM,
      "test",
      async () => {
        began = true;
      },
      { signal: controller.signal },
    );
    await expect(aborted).rejects.toThrow("the deadline passed");
    await first;
    expect(began).toBe(false);
    expect(await facts()).toEqual(["first"]);
  });

  test("goes on to its end when its signal is aborted after it began", async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const body = async (tx: WriteTransaction) => {
      controller.abort();
      return put(tx, "fact");
    };
    expect(await store.write(SYSTEM, "test", body, { signal })).toBe("fact");
    expect(await facts()).toEqual(["fact"]);
  });

  test("fails as unavailable, with all of its commit, when the engine gives up the transaction", async () => {
    await store.write(SYSTEM, "test", async (tx) => {
      await sql`create temp trigger gives_up before insert on fact when new.name = 'full'
        begin select raise(rollback, 'the disk is full'); end`.execute(tx.db);
    });
    const outcomes = await Promise.allSettled(
      ["before", "full", "behind"].map((name) => store.write(SYSTEM, "test", (tx) => put(tx, name))),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "fulfilled"]);
    for (const outcome of outcomes.slice(0, 2)) {
      expect(outcome.status === "rejected" && outcome.reason).toBeInstanceOf(StoreUnavailable);
    }
    expect(await facts()).toEqual(["behind"]);
    await expectWholeRecord({ [ONE]: ["behind"], [TWO]: [] });
  });

  test("is refused as unavailable when ten thousand wait already", async () => {
    const waiting = Array.from({ length: 10_000 }, () => store.write(SYSTEM, "test", async () => undefined));
    await expect(store.write(SYSTEM, "test", (tx) => put(tx, "too many"))).rejects.toThrow(StoreUnavailable);
    await Promise.all(waiting);
    await store.write(SYSTEM, "test", (tx) => put(tx, "later"));
    expect(await facts()).toEqual(["later"]);
  });
});

describe("while another process holds the write lock", () => {
  test("writes wait for it, and are then done", async () => {
    const other = startNode(
      `
      import Database from "better-sqlite3";
      const [, file] = process.argv;
      const database = new Database(file);
      await told();
      database.exec("begin immediate; insert into fact (name, value) values ('theirs', '')");
      print("held");
      setTimeout(() => { database.exec("commit"); print("released"); }, 300);`,
      join(dataDir, DATABASE_FILE),
    );
    other.tell("begin");
    expect(await other.next()).toBe("held");
    const started = performance.now();
    const names = await Promise.all(
      ["a", "b"].map((name) => store.write(SYSTEM, "test", (tx) => put(tx, name))),
    );
    expect(performance.now() - started).toBeGreaterThan(150);
    expect(names).toEqual(["a", "b"]);
    expect(await other.next()).toBe("released");
    expect(await facts()).toEqual(["a", "b", "theirs"]);
    await expectWholeRecord({ [ONE]: ["a", "b"] });
  });
});

describe("closing the store", () => {
  test("lets the writes under way finish, refuses later ones, and leaves one file", async () => {
    const names = Array.from({ length: 50 }, (_, index) => `fact ${index}`);
    const writes = names.map((name) => store.write(SYSTEM, "test", (tx) => put(tx, name)));
    const closed = store.close();
    let began = false;
    const late = store.write(SYSTEM, "test", async () => {
      began = true;
    });
    await expect(late).rejects.toThrow(StoreUnavailable);
    await expect(store.note("token", "t", { last_used_at: 1 })).rejects.toThrow(StoreUnavailable);
    expect(await Promise.all(writes)).toEqual(names);
    await closed;
    await expect(store.write(SYSTEM, "test", async () => undefined)).rejects.toThrow(StoreUnavailable);
    expect(began).toBe(false);
    store = open();
    expect((await facts()).sort()).toEqual(names.sort());
  });
});

describe("a note", () => {
  const insertToken = (id: string) =>
    store.write(SYSTEM, "test", async (tx) => {
      const row = {
        kind: "personal" as const,
        subject_id: "s",
        key_id: "k",
        read_only: 0,
        expires_at: 0,
        body: "{}",
      };
      await tx.db
        .insertInto("token")
        .values({ id, organization_id: ONE, hash: Buffer.from(id), last_used_at: null, ...row })
        .execute();
    });
  const lastUses = async () =>
    (await store.reader.selectFrom("token").select("last_used_at").orderBy("id").execute()).map(
      ({ last_used_at }) => last_used_at,
    );

  beforeEach(async () => {
    await insertToken("a");
    await insertToken("b");
  });

  test("changes what it may of the row that it names, and leaves no record", async () => {
    await store.note("token", "a", { last_used_at: 7 });
    expect(await lastUses()).toEqual([7, null]);
    await expectWholeRecord({ [ONE]: [], [TWO]: [] });
  });

  test.each(["expires_at", "hash", "body", "id", "read_only"])(
    "of the column %s is refused",
    async (column) => {
      const before = await store.reader.selectFrom("token").selectAll().execute();
      const values = { last_used_at: 7, [column]: 0 };
      await expect(store.note("token", "a", values)).rejects.toThrow(`token.${column} is no bookkeeping`);
      expect(await store.reader.selectFrom("token").selectAll().execute()).toEqual(before);
    },
  );

  test("of a table without bookkeeping is refused", async () => {
    for (const table of ["organization", "audit_log", "event"]) {
      await expect(store.note(table as "token", ONE, { name: "x" } as object)).rejects.toThrow();
    }
    expect(NOTABLE_COLUMNS).toEqual({
      token: ["last_used_at"],
      project: ["popularity"],
      environment: ["counted"],
    });
  });

  test("among several that is refused takes the others with it", async () => {
    const notes = [
      { table: "token", id: "a", values: { last_used_at: 7 } },
      { table: "token", id: "b", values: { expires_at: 7 } },
    ] as const;
    await expect(store.noteAll(notes)).rejects.toThrow("token.expires_at");
    expect(await lastUses()).toEqual([null, null]);
    await store.noteAll(notes.map(({ table, id }) => ({ table, id, values: { last_used_at: 8 } })));
    expect(await lastUses()).toEqual([8, 8]);
  });

  test("shares its commit with writes that wait beside it", async () => {
    const outcomes = await Promise.allSettled([
      store.note("token", "a", { last_used_at: 9 }),
      store.write(SYSTEM, "test", async () => {
        throw new Error("no");
      }),
      store.write(SYSTEM, "test", (tx) => put(tx, "fact")),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(await lastUses()).toEqual([9, null]);
  });
});

describe("the audit log", () => {
  const rewritten = async (tx: WriteTransaction) => {
    const row = await tx.db.selectFrom("audit_log").selectAll().limit(1).executeTakeFirstOrThrow();
    return { ...row, actor_id: "somebody else" };
  };
  const attempts: [string, (tx: WriteTransaction) => Promise<unknown>][] = [
    ["updated", (tx) => tx.db.updateTable("audit_log").set({ reason: "x" }).execute()],
    ["removed", (tx) => tx.db.deleteFrom("audit_log").execute()],
    [
      "replaced",
      async (tx) =>
        tx.db
          .replaceInto("audit_log")
          .values(await rewritten(tx))
          .execute(),
    ],
    [
      "replaced by its number",
      async (tx) =>
        tx.db
          .replaceInto("audit_log")
          .values({ ...(await rewritten(tx)), id: "another" })
          .execute(),
    ],
    [
      "updated on a conflict",
      async (tx) =>
        tx.db
          .insertInto("audit_log")
          .values(await rewritten(tx))
          .onConflict((conflict) => conflict.column("id").doUpdateSet({ actor_id: "somebody else" }))
          .execute(),
    ],
  ];

  test.each(attempts)("cannot have a row %s", async (_, attempt) => {
    const before = [await audit(ONE), await audit(TWO)];
    await expect(store.write(OPERATOR, "test", attempt)).rejects.toThrow("audit rows are never");
    expect([await audit(ONE), await audit(TWO)]).toEqual(before);
  });
});

describe("the reader", () => {
  test("cannot write", async () => {
    const writing = store.reader.insertInto("fact").values({ name: "fact", value: "" }).execute();
    await expect(writing).rejects.toThrow("readonly");
    await expect(sql`drop table fact`.execute(store.reader)).rejects.toThrow("readonly");
    expect(await facts()).toEqual([]);
  });
});

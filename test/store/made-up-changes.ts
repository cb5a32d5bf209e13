import { expect } from "@jest/globals";
import { v7 } from "uuid";
import { insertOrganization } from "../../src/store/identity/organization.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import { openStore } from "../../src/store/sqlite/open.ts";
import { type Change, OPERATOR, type Store, type WriteTransaction } from "../../src/store/store.ts";
import { temporaryFolder } from "../harness/server.ts";
import { AUDIT } from "./record/audit-seal.ts";

/** The two organizations of a {@link openWithOrganizations}. */
export const ONE = "0192d3c0-0000-7000-8000-000000000001";
export const TWO = "0192d3c0-0000-7000-8000-000000000002";

/** Milliseconds since 1970 UTC; what every clock of these tests says. */
export const NOW_MS = Date.UTC(2026, 0, 1);

interface OpenAtOptions {
  readonly grouping?: boolean;
}

/** Opens the store of a folder; what waits at the same time shares a commit, however slow the machine is. */
export function openAt(dataDir: string, options: OpenAtOptions = {}): Store {
  return openStore({
    dataDir,
    now: () => NOW_MS,
    newId: v7,
    audit: AUDIT,
    groupMs: Number.POSITIVE_INFINITY,
    ...options,
  });
}

/** A new store with two organizations and nothing else in it. */
export async function openWithOrganizations(grouping = true): Promise<{ dataDir: string; store: Store }> {
  const dataDir = temporaryFolder();
  const store = openAt(dataDir, { grouping });
  for (const id of [ONE, TWO]) {
    await store.write(OPERATOR, "test", (tx) => insertOrganization(tx, { id, name: id }));
  }
  return { dataDir, store };
}

/** The change of a project that is not there. */
export function change(organizationId: string, id: string): Change {
  return { organizationId, type: "project", id, kind: "created", after: JSON.stringify({ id }) };
}

/** Writes a row and the change of a made-up project, in one go. */
export async function put(tx: WriteTransaction, name: string, organizationId = ONE): Promise<string> {
  await builderOf(tx.db).insertInto("fact").values({ name, value: "" }).execute();
  tx.record(change(organizationId, name));
  return name;
}

/** Names of the rows that {@link put} wrote, in their order. */
export async function factsIn({ reader }: Store): Promise<string[]> {
  const rows = await builderOf(reader).selectFrom("fact").select("name").orderBy("name").execute();
  return rows.map(({ name }) => name);
}

/** An organization's audit rows, oldest first. */
export function auditOf({ reader }: Store, organizationId: string) {
  return builderOf(reader)
    .selectFrom("audit_log")
    .selectAll()
    .where("organization_id", "=", organizationId)
    .orderBy("sequence")
    .execute();
}

/** An organization's events, oldest first. */
export function eventsOf({ reader }: Store, organizationId: string) {
  return builderOf(reader)
    .selectFrom("event")
    .selectAll()
    .where("organization_id", "=", organizationId)
    .orderBy("sequence")
    .execute();
}

/** Holds audit log, events and counter of each organization against each other and against what was changed in it. */
export async function expectWholeRecord(
  store: Store,
  changed: Readonly<Record<string, readonly string[]>>,
): Promise<void> {
  for (const [organizationId, ids] of Object.entries(changed)) {
    const log = await auditOf(store, organizationId);
    expect(log.map(({ sequence }) => sequence)).toEqual(log.map((_, index) => index + 1));
    // The first is the organization's own.
    expect(log.slice(1).map(({ subject_id }) => subject_id)).toEqual(ids);
    const events = await eventsOf(store, organizationId);
    expect(events.map((row) => [row.sequence, row.at, row.resource_type, row.resource_id])).toEqual(
      log.map((row) => [row.sequence, row.at, row.subject_type, row.subject_id]),
    );
    const { sequence } = await builderOf(store.reader)
      .selectFrom("organization")
      .select("sequence")
      .where("id", "=", organizationId)
      .executeTakeFirstOrThrow();
    expect(sequence).toBe(log.length);
  }
}

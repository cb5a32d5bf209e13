import { expect } from "@jest/globals";
import { v7 } from "uuid";
import { insertOrganization } from "../../src/store/identity/organization.ts";
import { connectStore } from "../../src/store/postgres/open.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import { openStore } from "../../src/store/sqlite/open.ts";
import { type Change, OPERATOR, type Store, type WriteTransaction } from "../../src/store/store.ts";
import { databaseUrlOf } from "../harness/data-config.ts";
import { temporaryFolder } from "../harness/server.ts";
import { AUDIT } from "./record/audit-seal.ts";

/** The two organizations of {@link openWithOrganizations}. */
export const ONE = "0192d3c0-0000-7000-8000-000000000001";
export const TWO = "0192d3c0-0000-7000-8000-000000000002";

/** Milliseconds since 1970 UTC; the fixed time of every clock in these tests. */
export const NOW_MS = Date.UTC(2026, 0, 1);

interface OpenAtOptions {
  /** False to commit each write for itself, which SQLite alone can; default true. */
  readonly grouping?: boolean;
}

/** Opens the store of a folder; writes that wait together share a commit, however slow the machine is. */
export function openAt(dataDir: string, options: OpenAtOptions = {}): Store {
  const settings = { now: () => NOW_MS, newId: v7, audit: AUDIT, groupMs: Number.POSITIVE_INFINITY };
  const url = databaseUrlOf(dataDir);
  return url
    ? connectStore({ url, connections: 3, ...settings })
    : openStore({ dataDir, ...settings, ...options });
}

/** Opens a new store with two organizations and nothing else. */
export async function openWithOrganizations(grouping = true): Promise<{ dataDir: string; store: Store }> {
  const dataDir = temporaryFolder();
  const store = openAt(dataDir, { grouping });
  for (const id of [ONE, TWO]) {
    await store.write(OPERATOR, "test", (tx) => insertOrganization(tx, { id, name: id }));
  }
  return { dataDir, store };
}

/** Returns a change of a project that does not exist. */
export function change(organizationId: string, id: string): Change {
  return { organizationId, type: "project", id, kind: "created", after: JSON.stringify({ id }) };
}

/** Writes a row and the change of a made-up project in one transaction. */
export async function put(tx: WriteTransaction, name: string, organizationId = ONE): Promise<string> {
  await builderOf(tx.db).insertInto("fact").values({ name, value: "" }).execute();
  tx.record(change(organizationId, name));
  return name;
}

/** Returns the names of the rows that {@link put} wrote, in order. */
export async function factsIn({ reader }: Store): Promise<string[]> {
  const rows = await builderOf(reader).selectFrom("fact").select("name").orderBy("name").execute();
  return rows.map(({ name }) => name);
}

/** Returns an organization's audit rows, oldest first. */
export function auditOf({ reader }: Store, organizationId: string) {
  return builderOf(reader)
    .selectFrom("audit_log")
    .selectAll()
    .where("organization_id", "=", organizationId)
    .orderBy("sequence")
    .execute();
}

/** Returns an organization's events, oldest first. */
export function eventsOf({ reader }: Store, organizationId: string) {
  return builderOf(reader)
    .selectFrom("event")
    .selectAll()
    .where("organization_id", "=", organizationId)
    .orderBy("sequence")
    .execute();
}

/**
 * Checks that the audit log, events and counter of each organization agree with each other and with
 * its changes.
 */
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

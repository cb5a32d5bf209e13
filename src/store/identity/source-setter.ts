import { type JsonValue, toJson } from "@bufbuild/protobuf";
import { type Subject, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { isSameSubject } from "../../domain/source/source-trust.ts";
import { fromStoredJson, JSON_FORM } from "../json.ts";
import { prepared } from "../prepared.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";

/** Tables of resources with a source, whose rows name its setters. */
const SOURCE_TABLES = ["project", "environment", "workflow_execution"] as const;

export type SourceTable = (typeof SOURCE_TABLES)[number];

/** The resource that has the source; its creator is the setter when the row names none. */
export interface SourceOwner {
  readonly id: string;
  readonly metadata?: { readonly creator?: Subject | undefined } | undefined;
}

const selects = bySourceTable((table) =>
  prepared<{ id: string; organizationId: string }, { source_set_by?: string | null }>(
    (db, { id, organizationId }) =>
      db
        .selectFrom(table)
        .select("source_set_by")
        .where("id", "=", id)
        .where("organization_id", "=", organizationId),
  ),
);

const updates = bySourceTable((table) =>
  prepared<{ id: string; organizationId: string; setBy: string | null }, unknown>(
    (db, { id, organizationId, setBy }) =>
      db
        .updateTable(table)
        .set({ source_set_by: setBy })
        .where("id", "=", id)
        .where("organization_id", "=", organizationId),
  ),
);

/** Returns the distinct setters of a resource's source: at least one subject. */
export async function findSourceSetters(
  db: Reader,
  { organizationId }: Scope,
  table: SourceTable,
  owner: SourceOwner,
): Promise<readonly Subject[]> {
  const [row] = await selects[table](db, { id: owner.id, organizationId });
  return sourceSettersOf(row?.source_set_by, owner);
}

/** Returns the setters of a resource's source. @param setBy what its row has in `source_set_by` */
export function sourceSettersOf(
  setBy: string | null | undefined,
  { metadata }: SourceOwner,
): readonly Subject[] {
  if (setBy) return subjectsOf(setBy);
  return metadata?.creator ? [metadata.creator] : [];
}

/** Stores the setters of a new resource's source: nothing where its creator is the only one. */
export async function insertSourceSetters(
  tx: WriteTransaction,
  scope: Scope,
  table: SourceTable,
  owner: SourceOwner,
  setters: readonly Subject[],
): Promise<void> {
  if (!isCreatorAlone(owner, setters)) await updateSourceSetters(tx, scope, table, owner, setters);
}

/** The setters of a source before and after a change, as JSON for the audit trail. */
export interface SourceSetterChange {
  readonly before: JsonValue[];
  readonly after: JsonValue[];
}

/**
 * Replaces the setters of a resource's source.
 * @returns the value of `sourceSetBy` in the resource's audit row: its body has no such field
 */
export async function replaceSourceSetters(
  tx: WriteTransaction,
  scope: Scope,
  table: SourceTable,
  owner: SourceOwner,
  setters: readonly Subject[],
): Promise<SourceSetterChange> {
  const before = await findSourceSetters(tx.db, scope, table, owner);
  await updateSourceSetters(tx, scope, table, owner, setters);
  return { before: subjectsJson(before), after: subjectsJson(setters) };
}

async function updateSourceSetters(
  tx: WriteTransaction,
  { organizationId }: Scope,
  table: SourceTable,
  owner: SourceOwner,
  setters: readonly Subject[],
): Promise<void> {
  const setBy = isCreatorAlone(owner, setters) ? null : subjectsText(setters);
  await updates[table](tx.db, { id: owner.id, organizationId, setBy });
}

/** Returns the JSON array that subjects are stored as. */
export function subjectsText(subjects: readonly Subject[]): string {
  return JSON.stringify(subjectsJson(subjects));
}

function subjectsJson(subjects: readonly Subject[]): JsonValue[] {
  return subjects.map((subject) => toJson(SubjectSchema, subject, JSON_FORM));
}

/** Returns the subjects of a stored JSON array. */
export function subjectsOf(text: string): Subject[] {
  return (JSON.parse(text) as JsonValue[]).map((each) => fromStoredJson(SubjectSchema, each));
}

function isCreatorAlone({ metadata }: SourceOwner, [first, ...others]: readonly Subject[]): boolean {
  return others.length === 0 && isSameSubject(first, metadata?.creator);
}

function bySourceTable<T>(make: (table: SourceTable) => T): Readonly<Record<SourceTable, T>> {
  return Object.fromEntries(SOURCE_TABLES.map((table) => [table, make(table)])) as Record<SourceTable, T>;
}

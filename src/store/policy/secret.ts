import { type Secret, SecretSchema } from "#gen/service/v1/secret_pb.js";
import { type ListedRow, type PagePosition, positionById } from "../../domain/page.ts";
import { ownerOf, type SecretOwner, type SecretOwnerKind } from "../../domain/policy/secret.ts";
import { checkDeadline } from "../expressions.ts";
import { firstRows, type RowOrder } from "../first-rows.ts";
import { fromBody, toBody } from "../json.ts";
import { bodyColumns, listedRows } from "../listed-row.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import { SECRETS_HANDED_OUT } from "../record/audit-log.ts";
import type { Reader, ResourceType, Scope, WriteTransaction } from "../store.ts";
import type { SecretTable } from "./policy-schema.ts";

/** The encrypted value of a secret, and the id of its key. */
export interface SealedValue {
  readonly keyId: string;
  readonly sealed: Uint8Array;
}

export interface StoredSecret {
  readonly secret: Secret;
  readonly value: SealedValue;
  /** Length of the value in UTF-8. */
  readonly valueBytes: number;
}

type StoredColumns = Pick<SecretTable, "body" | "key_id" | "sealed" | "value_bytes">;

const STORED_COLUMNS = ["body", "key_id", "sealed", "value_bytes"] as const;

const selectSecret = prepared<{ id: string; organizationId: string }, StoredColumns>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("secret")
      .select(STORED_COLUMNS)
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

export async function findSecret(db: Reader, scope: Scope, id: string): Promise<StoredSecret | undefined> {
  const [row] = await selectSecret(db, { id, organizationId: scope.organizationId });
  return row && storedOfRow(row);
}

/** Returns the secrets of owners in the scope, by id ascending. */
export async function findSecretsOf(
  db: Reader,
  scope: Scope,
  ownerIds: readonly string[],
): Promise<StoredSecret[]> {
  const rows = await builderOf(db)
    .selectFrom("secret")
    .select(STORED_COLUMNS)
    .where("owner_id", "in", ownerIds)
    .where("organization_id", "=", scope.organizationId)
    .orderBy("id")
    .execute();
  return rows.map(storedOfRow);
}

/** By owners alone: with the organization in the condition, SQLite would read all of its secrets. */
const selectSecretsForWork = prepared<
  { organizationId: string; projectId: string; subjectId: string },
  StoredColumns & { organization_id: string }
>((db, { organizationId, projectId, subjectId }) =>
  db
    .selectFrom("secret")
    .select([...STORED_COLUMNS, "organization_id"])
    .where("owner_id", "in", [organizationId, projectId, subjectId]),
);

/** The owners other than the organization whose secrets work may get; empty for none. */
export interface OwnersForWork {
  readonly projectId: string;
  /** The user or service account. */
  readonly subjectId: string;
}

/** Returns the secrets of the organization and of other owners, in any order. */
export async function findSecretsForWork(
  db: Reader,
  { organizationId }: Scope,
  owners: OwnersForWork,
): Promise<StoredSecret[]> {
  const rows = await selectSecretsForWork(db, { organizationId, ...owners });
  return rows.filter((row) => row.organization_id === organizationId).map(storedOfRow);
}

/** Which work got which secrets. */
export interface HandedSecrets {
  readonly environmentId: string;
  readonly runnerId: string;
  readonly leaseId: string;
  /** The kind of the work, as named in the contract's Work. */
  readonly work: string;
  /** Id of the environment, action or agent execution that the work is on. */
  readonly workSubjectId: string;
  readonly secretIds: readonly string[];
}

/** Records that a runner gets secrets with a lease: one audit row for all of them, on the environment. */
export function recordHandedSecrets(tx: WriteTransaction, scope: Scope, handed: HandedSecrets): void {
  const { environmentId: id, ...after } = handed;
  const { organizationId } = scope;
  tx.record({
    organizationId,
    type: "environment",
    id,
    kind: "read",
    operation: SECRETS_HANDED_OUT,
    after: JSON.stringify(after),
  });
}

/** The conditions of a list: fields combine with AND, values inside one with OR. */
export interface SecretFilter {
  /** Secrets of these kinds of owners, and those of these owners, are visible. */
  readonly visible: { readonly kinds: readonly SecretOwnerKind[]; readonly ownerId: string };
  /** Undefined for any. */
  readonly owner: SecretOwner | undefined;
  /** Empty for any. */
  readonly projectIds: readonly string[];
}

/** Returns up to `limit` secrets after `after`, by id ascending, without their values. */
export async function findSecretPage(
  db: Reader,
  scope: Scope,
  { visible, owner, projectIds }: SecretFilter,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<Secret>[]> {
  const own = builderOf(db)
    .selectFrom("secret")
    .select(["id", ...bodyColumns("secret")])
    .where(checkDeadline())
    .where("organization_id", "=", scope.organizationId);
  let query = own.where((eb) =>
    eb.or([eb("owner_kind", "in", visible.kinds), eb("owner_id", "=", visible.ownerId)]),
  );
  if (owner) query = query.where("owner_kind", "=", owner.kind).where("owner_id", "=", owner.id);
  if (projectIds.length > 0)
    query = query.where("owner_kind", "=", "project").where("owner_id", "in", projectIds);
  const order: RowOrder = { columns: ["secret.id"], direction: "asc", after: after && [after.id] };
  const rows = await firstRows(own, query, order, limit);
  return listedRows(db, "secret", rows, positionById, ({ body }) => fromBody(SecretSchema, body));
}

export async function insertSecret(
  tx: WriteTransaction,
  scope: Scope,
  { secret, value, valueBytes }: StoredSecret,
): Promise<void> {
  const { kind, id } = ownerOf(secret);
  await builderOf(tx.db)
    .insertInto("secret")
    .values({
      id: secret.id,
      organization_id: scope.organizationId,
      owner_kind: kind,
      owner_id: id,
      name: secret.name,
      value_bytes: valueBytes,
      key_id: value.keyId,
      sealed: value.sealed,
      body: toBody(SecretSchema, secret),
    })
    .execute();
  tx.record({ ...changeOf(scope, secret), kind: "created", after: maskValue(secret, "(secret)") });
}

/** Replaces the value of a secret. */
export async function updateSecret(
  tx: WriteTransaction,
  scope: Scope,
  before: StoredSecret,
  { secret, value, valueBytes }: StoredSecret,
): Promise<void> {
  await builderOf(tx.db)
    .updateTable("secret")
    .set({
      value_bytes: valueBytes,
      key_id: value.keyId,
      sealed: value.sealed,
      body: toBody(SecretSchema, secret),
    })
    .where("id", "=", secret.id)
    .where("organization_id", "=", scope.organizationId)
    .execute();
  tx.record({
    ...changeOf(scope, secret),
    kind: "updated",
    before: maskValue(before.secret, "(secret)"),
    after: maskValue(secret, "(new secret)"),
  });
}

export async function removeSecret(tx: WriteTransaction, scope: Scope, secret: Secret): Promise<void> {
  await builderOf(tx.db)
    .deleteFrom("secret")
    .where("id", "=", secret.id)
    .where("organization_id", "=", scope.organizationId)
    .execute();
  tx.record({ ...changeOf(scope, secret), kind: "deleted", before: maskValue(secret, "(secret)") });
}

/** Removes the secrets of an owner, when the owner is removed. */
export async function removeSecretsOf(tx: WriteTransaction, scope: Scope, ownerId: string): Promise<void> {
  for (const { secret } of await findSecretsOf(tx.db, scope, [ownerId])) {
    await removeSecret(tx, scope, secret);
  }
}

/**
 * Returns up to `limit` secrets whose values are sealed with a key. For the system, so without a
 * scope.
 */
export async function findSecretsUnderKey(
  db: Reader,
  keyId: string,
  limit: number,
): Promise<(Scope & { readonly id: string; readonly value: SealedValue })[]> {
  const rows = await builderOf(db)
    .selectFrom("secret")
    .select(["organization_id as organizationId", "id", "key_id as keyId", "sealed"])
    .where("key_id", "=", keyId)
    .limit(limit)
    .execute();
  return rows.map(({ organizationId, id, ...value }) => ({ organizationId, id, value }));
}

/** Stores the same value sealed with another key. The secret does not change, so nothing is recorded. */
export async function reencryptSecretValue(
  { db }: WriteTransaction,
  id: string,
  { keyId, sealed }: SealedValue,
): Promise<void> {
  await builderOf(db).updateTable("secret").set({ key_id: keyId, sealed }).where("id", "=", id).execute();
}

const TYPES: Readonly<Record<SecretOwnerKind, ResourceType>> = {
  organization: "organization_secret",
  project: "secret",
  user: "user_secret",
  service_account: "service_account_secret",
};

function changeOf({ organizationId }: Scope, secret: Secret) {
  const { kind, id } = ownerOf(secret);
  const isPersonal = kind === "user" || kind === "service_account";
  const facts = { creatorId: secret.creator?.id ?? null, ownerId: isPersonal ? id : null };
  return { organizationId, type: TYPES[kind], id: secret.id, facts };
}

/** Returns the audit record of a secret: that there is a value, and when it is replaced. */
function maskValue(secret: Secret, value: string): string {
  return JSON.stringify({ ...JSON.parse(toBody(SecretSchema, secret)), value });
}

function storedOfRow({ body, key_id, sealed, value_bytes }: StoredColumns): StoredSecret {
  return { secret: fromBody(SecretSchema, body), value: { keyId: key_id, sealed }, valueBytes: value_bytes };
}

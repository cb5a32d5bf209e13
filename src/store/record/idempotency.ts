import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import type { IdempotencyTable } from "./record-schema.ts";

/** Time for which a response is stored for repetitions of its request. */
const RESPONSE_VALID_MS = 24 * 3600 * 1000;

/** The key of a stored response: keys of different callers or operations are different keys. */
export interface ResponseKey {
  readonly callerId: string;
  readonly operation: string;
  readonly key: string;
}

export type StoredResponse = Pick<IdempotencyTable, "request_hash" | "response" | "redacted">;

const selectResponse = prepared<ResponseKey & { organizationId: string; after: number }, StoredResponse>(
  (db, { callerId, operation, key, organizationId, after }) =>
    db
      .selectFrom("idempotency")
      .select(["request_hash", "response", "redacted"])
      .where("caller_id", "=", callerId)
      .where("operation", "=", operation)
      .where("key", "=", key)
      .where("organization_id", "=", organizationId)
      .where("created_at", ">", after),
);

/**
 * Returns the response stored under a key; undefined when there is none or it is older than {@link
 * RESPONSE_VALID_MS}.
 */
export async function findStoredResponse(
  tx: WriteTransaction,
  { organizationId }: Scope,
  place: ResponseKey,
): Promise<StoredResponse | undefined> {
  const [row] = await selectResponse(tx.db, { ...place, organizationId, after: tx.now - RESPONSE_VALID_MS });
  return row;
}

const upsertResponse = prepared<IdempotencyTable, unknown>((db, row) =>
  db
    .insertInto("idempotency")
    .values({
      caller_id: row.caller_id,
      operation: row.operation,
      key: row.key,
      organization_id: row.organization_id,
      created_at: row.created_at,
      request_hash: row.request_hash,
      response: row.response,
      redacted: row.redacted,
    })
    .onConflict((conflict) =>
      conflict.columns(["caller_id", "operation", "key"]).doUpdateSet({
        organization_id: (eb) => eb.ref("excluded.organization_id"),
        created_at: (eb) => eb.ref("excluded.created_at"),
        request_hash: (eb) => eb.ref("excluded.request_hash"),
        response: (eb) => eb.ref("excluded.response"),
        redacted: (eb) => eb.ref("excluded.redacted"),
      }),
    ),
);

/** Stores a response, replacing an expired one. It leaves no audit row: the write itself does. */
export async function insertStoredResponse(
  tx: WriteTransaction,
  scope: Scope,
  { callerId, operation, key }: ResponseKey,
  response: StoredResponse,
): Promise<void> {
  await upsertResponse(tx.db, {
    caller_id: callerId,
    operation,
    key,
    organization_id: scope.organizationId,
    created_at: tx.now,
    ...response,
  });
}

/**
 * Returns which of the `limit` oldest responses of all organizations are expired at `now`: their organizations (null
 * for responses of an earlier release), and the time of the newest of each. For the system.
 */
export async function findOldResponses(
  db: Reader,
  now: number,
  limit: number,
): Promise<{ readonly organizationId: string | null; readonly until: number }[]> {
  return builderOf(db)
    .selectFrom((eb) =>
      eb
        .selectFrom("idempotency")
        .select(["organization_id", "created_at"])
        .where("created_at", "<=", now - RESPONSE_VALID_MS)
        .orderBy("created_at")
        .limit(limit)
        .as("old"),
    )
    .select((eb) => ["organization_id as organizationId", eb.fn.max<number>("created_at").as("until")])
    .groupBy("organization_id")
    .execute();
}

/**
 * Removes the responses of an organization up to a time, without a record.
 * @param organizationId null for the responses of an earlier release
 * @returns the number of removed responses
 */
export async function removeResponses(
  { db }: WriteTransaction,
  organizationId: string | null,
  until: number,
): Promise<number> {
  const { numDeletedRows } = await builderOf(db)
    .deleteFrom("idempotency")
    .where("organization_id", organizationId === null ? "is" : "=", organizationId)
    .where("created_at", "<=", until)
    .executeTakeFirst();
  return Number(numDeletedRows);
}

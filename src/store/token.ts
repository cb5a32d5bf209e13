import type { Kysely } from "kysely";
import { prepared } from "./prepared.ts";
import type { Schema, TokenTable } from "./schema.ts";
import type { Scope, WriteTransaction } from "./store.ts";

/** What a token's hash leads to: the token, and the member it acts for. */
export interface FoundToken {
  readonly id: string;
  readonly organization_id: string;
  readonly subject_id: string;
  readonly account_id: string;
  readonly read_only: number;
  readonly expires_at: number;
  readonly last_used_at: number | null;
}

const selectPersonalToken = prepared<{ hash: Uint8Array; kind: "personal" }, FoundToken>(
  (db, { hash, kind }) =>
    db
      .selectFrom("token")
      .innerJoin("member", "member.id", "token.subject_id")
      .select([
        "token.id",
        "token.organization_id",
        "token.subject_id",
        "member.account_id",
        "token.read_only",
        "token.expires_at",
        "token.last_used_at",
      ])
      .where("token.hash", "=", hash)
      .where("token.kind", "=", kind),
);

/** The one lookup of a request without a scope: it is what tells the scope. */
export async function findPersonalToken(
  db: Kysely<Schema>,
  hash: Uint8Array,
): Promise<FoundToken | undefined> {
  const [row] = await selectPersonalToken(db, { hash, kind: "personal" });
  return row;
}

const selectTokens = prepared<
  { organizationId: string; kind: TokenTable["kind"]; subjectId: string },
  TokenTable
>((db, { organizationId, kind, subjectId }) =>
  db
    .selectFrom("token")
    .selectAll()
    .where("organization_id", "=", organizationId)
    .where("kind", "=", kind)
    .where("subject_id", "=", subjectId)
    .orderBy("id"),
);

/** The tokens of one kind that act for a member or a runner, oldest first. */
export async function findTokens(
  db: Kysely<Schema>,
  scope: Scope,
  kind: TokenTable["kind"],
  subjectId: string,
): Promise<TokenTable[]> {
  return selectTokens(db, { organizationId: scope.organizationId, kind, subjectId });
}

/** Up to `limit` exchange tokens that no longer hold at `now`. For the system, so without a scope. */
export async function findExpiredExchangeTokens(
  db: Kysely<Schema>,
  now: number,
  limit: number,
): Promise<TokenTable[]> {
  return db
    .selectFrom("token")
    .selectAll()
    .where("kind", "=", "exchange")
    .where("expires_at", "<=", now)
    .orderBy("id")
    .limit(limit)
    .execute();
}

export async function insertToken(tx: WriteTransaction, scope: Scope, token: TokenTable): Promise<void> {
  await tx.db.insertInto("token").values(token).execute();
  tx.record({
    organizationId: scope.organizationId,
    type: "token",
    id: token.id,
    kind: "created",
    // The body is the token's description; neither value nor hash is part of it.
    after: token.body,
  });
}

/** Removes a token; from the next request on its value is unknown. */
export async function removeToken(tx: WriteTransaction, scope: Scope, token: TokenTable): Promise<void> {
  await tx.db
    .deleteFrom("token")
    .where("id", "=", token.id)
    .where("organization_id", "=", scope.organizationId)
    .execute();
  tx.record({
    organizationId: scope.organizationId,
    type: "token",
    id: token.id,
    kind: "deleted",
    before: token.body,
  });
}

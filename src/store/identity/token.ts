import { endsSoon } from "../../domain/identity/token-end.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Actor, Reader, ResourceType, Scope, WriteTransaction } from "../store.ts";
import type { TokenTable } from "./identity-schema.ts";

/** A token found by its hash, with the principal that it acts for. */
export interface FoundToken {
  readonly id: string;
  readonly organization_id: string;
  readonly kind: TokenTable["kind"];
  readonly subject_id: string;
  readonly read_only: number;
  readonly expires_at: number;
  readonly last_used_at: number | null;
  readonly disabled_at: number | null;
  /**
   * Id of the accountable account: the member's own, that of the agent execution, or that of the
   * environment's creator; null without one.
   */
  readonly account_id: string | null;
  /** Set while that account, or that of the environment's creator, is blocked. */
  readonly blocked_at: number | null;
  /** Role of the member that it acts for; null for other principals. */
  readonly role: number | null;
  /** Set once that member left its organization. */
  readonly left_at: number | null;
  /** Set while that member, or the creator of the environment, is suspended there. */
  readonly suspended_at: number | null;
  /** End of validity of the service account that it acts for; null for other principals. */
  readonly valid_until: number | null;
  /** 1 while that service account is suspended. */
  readonly suspended: number | null;
}

/** Selects tokens with the principals that they act for, of all organizations. */
const tokensWithPrincipals = (db: Reader) =>
  builderOf(db)
    .selectFrom("token")
    .leftJoin("environment", (join) =>
      join.onRef("environment.id", "=", "token.subject_id").on("token.kind", "=", "environment"),
    )
    .leftJoin("member", (join) =>
      join.on((eb) =>
        eb(
          "member.id",
          "=",
          eb
            .case()
            .when("token.kind", "in", ["personal", "session", "link"])
            .then(eb.ref("token.subject_id"))
            .when("token.kind", "=", "environment")
            .then(eb.ref("environment.creator_id"))
            .end(),
        ),
      ),
    )
    .leftJoin("account", "account.id", "member.account_id")
    .leftJoin("account as agent_account", (join) =>
      join.onRef("agent_account.id", "=", "token.creator_account_id").on("token.kind", "=", "environment"),
    )
    .leftJoin("service_account", (join) =>
      join
        .onRef("service_account.id", "=", "token.subject_id")
        .on("token.kind", "in", ["service_account", "machine"]),
    )
    .select((eb) => [
      "token.id",
      "token.organization_id",
      "token.kind",
      "token.subject_id",
      "token.read_only",
      "token.expires_at",
      "token.last_used_at",
      "token.disabled_at",
      eb.fn.coalesce("agent_account.id", "member.account_id").as("account_id"),
      eb.fn.coalesce("agent_account.blocked_at", "account.blocked_at").as("blocked_at"),
      "member.role",
      "member.left_at",
      "member.suspended_at",
      "service_account.valid_until",
      "service_account.suspended",
    ]);

const selectByHash = prepared<{ hash: Uint8Array }, FoundToken>((db, { hash }) =>
  tokensWithPrincipals(db).where("token.hash", "=", hash),
);

/**
 * Returns the token with a hash. This is the only look-up of a request without a scope, because it
 * determines the scope.
 */
export async function findTokenByHash(db: Reader, hash: Uint8Array): Promise<FoundToken | undefined> {
  const [row] = await selectByHash(db, { hash });
  return row;
}

/**
 * Returns the number of tokens that are still stored under their HMAC. For the system, so without a
 * scope.
 */
export async function countTokensUnderMac(db: Reader): Promise<number> {
  const { count } = await builderOf(db)
    .selectFrom("token")
    .select(({ fn }) => fn.countAll<number>().as("count"))
    .where("hmac_key_id", "is not", null)
    .executeTakeFirstOrThrow();
  return count;
}

const selectById = prepared<{ id: string }, FoundToken>((db, { id }) =>
  tokensWithPrincipals(db).where("token.id", "=", id),
);

/** Returns the current state of a token, to revalidate open streams. Only for ids of authenticated tokens. */
export async function findTokenById(db: Reader, id: string): Promise<FoundToken | undefined> {
  const [row] = await selectById(db, { id });
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

/** Returns the tokens of one kind that act for a member or a runner, oldest first. */
export async function findTokens(
  db: Reader,
  scope: Scope,
  kind: TokenTable["kind"],
  subjectId: string,
): Promise<TokenTable[]> {
  return selectTokens(db, { organizationId: scope.organizationId, kind, subjectId });
}

/** Kinds of tokens that no list shows after they expire, so they are removed then. */
const UNLISTED_KINDS: readonly TokenTable["kind"][] = [
  "exchange",
  "runner",
  "environment",
  "session",
  "link",
  "machine",
];

/**
 * Returns up to `limit` tokens of programs that have expired at `now`. For the system, so without a
 * scope.
 * @param organizationId of the tokens; default any
 */
export async function findExpiredProgramTokens(
  db: Reader,
  now: number,
  limit: number,
  organizationId?: string,
): Promise<TokenTable[]> {
  return builderOf(db)
    .selectFrom("token")
    .selectAll()
    .where("kind", "in", UNLISTED_KINDS)
    .where("expires_at", "<=", now)
    .$if(organizationId !== undefined, (tokens) =>
      tokens.where("organization_id", "=", organizationId as string),
    )
    .orderBy("id")
    .limit(limit)
    .execute();
}

/** Resource types of tokens in the record, by kind. */
export const TYPES: Readonly<Record<TokenTable["kind"], ResourceType>> = {
  personal: "personal_token",
  service_account: "service_account_token",
  runner: "token",
  environment: "token",
  exchange: "token",
  session: "token",
  link: "token",
  machine: "token",
};

const insertRow = prepared<TokenTable, unknown>((db, row) =>
  db.insertInto("token").values({
    id: row.id,
    organization_id: row.organization_id,
    kind: row.kind,
    subject_id: row.subject_id,
    hash: row.hash,
    hmac_key_id: row.hmac_key_id,
    read_only: row.read_only,
    expires_at: row.expires_at,
    last_used_at: row.last_used_at,
    creator_account_id: row.creator_account_id,
    disabled_at: row.disabled_at,
    warned_at: row.warned_at,
    parent_id: row.parent_id,
    identity_id: row.identity_id,
    provider_session_id: row.provider_session_id,
    body: row.body,
  }),
);

type Beginning = "parent_id" | "identity_id" | "provider_session_id";
/** A token without what its end decides; where a session began is null when absent. */
export type NewToken = Omit<TokenTable, "warned_at" | Beginning> & Partial<Pick<TokenTable, Beginning>>;

export async function insertToken(tx: WriteTransaction, scope: Scope, token: NewToken): Promise<void> {
  await insertRow(tx.db, {
    ...token,
    warned_at: endsSoon(token.expires_at, tx.now) ? tx.now : null,
    parent_id: token.parent_id ?? null,
    identity_id: token.identity_id ?? null,
    provider_session_id: token.provider_session_id ?? null,
  });
  tx.record({
    organizationId: scope.organizationId,
    type: TYPES[token.kind],
    id: token.id,
    kind: "created",
    // The body is the token's description; it contains neither value nor hash.
    after: token.body,
    facts: { ownerId: token.subject_id },
  });
}

const deleteRow = prepared<{ id: string; organizationId: string }, unknown>((db, { id, organizationId }) =>
  db.deleteFrom("token").where("id", "=", id).where("organization_id", "=", organizationId),
);

/**
 * Removes a token, with the sessions that began with it; from the next request on its value is unknown.
 *
 * @param actor the author of the removal; default the author of the write
 */
export async function removeToken(
  tx: WriteTransaction,
  scope: Scope,
  token: TokenTable,
  actor?: Actor,
): Promise<void> {
  if (token.kind === "personal") {
    const sessions = builderOf(tx.db)
      .selectFrom("token")
      .selectAll()
      .where("parent_id", "=", token.id)
      .where("organization_id", "=", scope.organizationId);
    for (const session of await sessions.execute()) await removeToken(tx, scope, session, actor);
  }
  await deleteRow(tx.db, { id: token.id, organizationId: scope.organizationId });
  tx.record({
    organizationId: scope.organizationId,
    type: TYPES[token.kind],
    id: token.id,
    kind: "deleted",
    before: token.body,
    facts: { ownerId: token.subject_id },
    ...(actor && { actor }),
  });
}

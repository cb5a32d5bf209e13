import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Session, SessionSchema } from "#gen/service/v1/user_pb.js";
import { type ListedRow, type PagePosition, positionById } from "../../domain/page.ts";
import { checkDeadline } from "../expressions.ts";
import { firstOfFew } from "../first-rows.ts";
import { fromBody } from "../json.ts";
import { bodyColumns, listedRows } from "../listed-row.ts";
import { builderOf } from "../query-builder.ts";
import type { Actor, Reader, Scope, WriteTransaction } from "../store.ts";
import { denyDeviceLoginsOf } from "./device-login.ts";
import type { TokenTable } from "./identity-schema.ts";
import { findTokens, removeToken } from "./token.ts";

/**
 * Returns up to `limit` sessions of a user after `after`, by id ascending, without those that ended.
 * @param now milliseconds since 1970 UTC
 * @param idleSince time of the last use, or of the beginning, from which on one still holds
 */
export async function findSessionPage(
  db: Reader,
  scope: Scope,
  { userId, now, idleSince }: { readonly userId: string; readonly now: number; readonly idleSince: number },
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<Session>[]> {
  const all = builderOf(db)
    .selectFrom("token")
    .select(["id", "last_used_at", ...bodyColumns("token")])
    .where(checkDeadline())
    .where("organization_id", "=", scope.organizationId)
    .where("kind", "=", "session")
    .where("subject_id", "=", userId)
    .where("expires_at", ">", now)
    .where("last_used_at", ">", idleSince);
  const order = { columns: ["token.id"], direction: "asc", after: after && [after.id] } as const;
  const rows = await firstOfFew(all, order, limit);
  return listedRows(db, "token", rows, positionById, sessionOfRow);
}

/** Returns a user's session by its id. */
export async function findOwnSession(
  db: Reader,
  scope: Scope,
  userId: string,
  id: string,
): Promise<TokenTable | undefined> {
  return builderOf(db)
    .selectFrom("token")
    .selectAll()
    .where("id", "=", id)
    .where("organization_id", "=", scope.organizationId)
    .where("subject_id", "=", userId)
    .where("kind", "=", "session")
    .executeTakeFirst();
}

/**
 * Ends a session, or makes a link useless; does nothing for one that is gone.
 *
 * @param actor who does it, a member of the scope's organization; default the author of the write
 */
export async function removeSignIn(
  tx: WriteTransaction,
  scope: Scope,
  id: string,
  actor?: Actor,
): Promise<void> {
  const token = await builderOf(tx.db)
    .selectFrom("token")
    .selectAll()
    .where("id", "=", id)
    .where("organization_id", "=", scope.organizationId)
    .where("kind", "in", ["session", "link"])
    .executeTakeFirst();
  if (token) await removeToken(tx, scope, token, actor);
}

/** Ends the oldest sessions of a member of the scope's organization, including expired ones, except `kept`. */
export async function removeOldestSessions(
  tx: WriteTransaction,
  scope: Scope,
  userId: string,
  kept: number,
): Promise<void> {
  const sessions = await findTokens(tx.db, scope, "session", userId);
  for (const session of sessions.slice(0, Math.max(0, sessions.length - kept))) {
    await removeToken(tx, scope, session);
  }
}

/**
 * Returns the sessions of any organization that began at a provider. For the provider, which says that they have ended.
 *
 * @param subject whose they are there; undefined for anybody's
 * @param sessionId the provider's own session; undefined for all
 */
export async function findProviderSessions(
  db: Reader,
  issuer: string,
  subject: string | undefined,
  sessionId: string | undefined,
): Promise<TokenTable[]> {
  return builderOf(db)
    .selectFrom("token")
    .innerJoin("provider_identity", "provider_identity.id", "token.identity_id")
    .selectAll("token")
    .where("provider_identity.issuer", "=", issuer)
    .$if(subject !== undefined, (rows) => rows.where("provider_identity.subject", "=", subject as string))
    .$if(sessionId !== undefined, (rows) => rows.where("token.provider_session_id", "=", sessionId as string))
    .where("token.identity_id", "is not", null)
    .orderBy("token.id")
    .execute();
}

/**
 * Ends the sessions of a member of the scope's organization; its sign-in links, and what it has allowed devices that have not
 * asked again, are of no use any more.
 */
export async function removeSessionsOf(tx: WriteTransaction, scope: Scope, userId: string): Promise<void> {
  for (const kind of ["session", "link"] as const) {
    for (const token of await findTokens(tx.db, scope, kind, userId)) await removeToken(tx, scope, token);
  }
  await denyDeviceLoginsOf(tx, scope, userId);
}

function sessionOfRow(row: Pick<TokenTable, "body" | "last_used_at">): Session {
  const session = fromBody(SessionSchema, row.body);
  if (row.last_used_at !== null) session.lastUsed = timestampFromMs(row.last_used_at);
  return session;
}

import type { DataConfig } from "../config/config.ts";
import { createTokenAsOperator, findUsers } from "../services/access/organization-creation.ts";
import type { FoundUser } from "../store/identity/member.ts";
import { removeToken } from "../store/identity/token.ts";
import { findAccessTokens, findAnyToken, type OperatorToken } from "../store/identity/token-list.ts";
import { OPERATOR, type Reader, type Store, type WriteTransaction } from "../store/store.ts";
import type { Listing } from "./definitions/command-line.ts";
import { openExistingData } from "./open-data.ts";
import { StartError } from "./start-error.ts";

const DAY_MS = 24 * 3600 * 1000;

export interface TokenOptions {
  /** The id or email of the user; optional if there is only one. */
  readonly user?: string;
  readonly description: string;
  /** The lifetime in whole days, 1 to 90. */
  readonly days: number;
  readonly readOnly: boolean;
}

/**
 * Creates a personal access token as the operator. A running server accepts it from the next request on.
 *
 * @returns a line with the token's value, which is stored nowhere
 * @throws StartError when no user matches, or more than one
 */
export async function createAccessToken(config: DataConfig, options: TokenOptions): Promise<string> {
  const { store, keys } = await openExistingData(config);
  try {
    const user = await resolveUser(store, options.user);
    const value = await createTokenAsOperator(store, keys, {
      userId: user.userId,
      description: options.description,
      validForMs: options.days * DAY_MS,
      readOnly: options.readOnly,
    });
    return `${value}\n`;
  } finally {
    await store.close();
  }
}

/**
 * Lists the access tokens of users and service accounts without their values: id, owner, organization, expiry, last
 * use, and whether the token is disabled.
 *
 * @param user id or email of the user whose tokens to list; all by default
 * @throws StartError when no user matches, or more than one
 */
export async function listTokens(config: DataConfig, user?: string): Promise<Listing> {
  const { store } = await openExistingData(config);
  try {
    const userId = user === undefined ? undefined : (await resolveUser(store, user)).userId;
    const tokens = await findAccessTokens(store.reader);
    const rows = tokens.filter(({ subjectId }) => userId === undefined || subjectId === userId).map(rowOf);
    return { headings: ["TOKEN", "OWNER", "ORGANIZATION", "EXPIRY", "LAST USE", "STATE"], rows };
  } finally {
    await store.close();
  }
}

/**
 * Revokes a token of any kind. A running server refuses it from the next request on.
 *
 * @throws StartError when there is no such token
 */
export async function revokeToken(config: DataConfig, id: string): Promise<string> {
  const { store } = await openExistingData(config);
  try {
    const find = async (db: Reader) => {
      const token = await findAnyToken(db, id.toLowerCase());
      if (!token) throw new StartError(`no token has the id ${id}`);
      return token;
    };
    const revoke = async (tx: WriteTransaction) => {
      const token = await find(tx.db);
      await removeToken(tx, { organizationId: token.organization_id }, token);
    };
    await store.write(OPERATOR, "chartroom token revoke", revoke, {
      locks: async (db) => [(await find(db)).organization_id],
    });
    return `revoked ${id.toLowerCase()}\n`;
  } finally {
    await store.close();
  }
}

/** Finds the user with an id or email, or the only user. */
async function resolveUser(store: Store, named: string | undefined): Promise<FoundUser> {
  const users = await findUsers(store.reader);
  const fitting = named
    ? users.filter(({ userId, email }) => userId === named.toLowerCase() || email === named)
    : users;
  const [user, other] = fitting;
  if (!user) {
    throw new StartError(
      named ? `no user has the id or email ${named}` : "there is no user yet: start the server once",
    );
  }
  if (!other) return user;
  const choices = fitting.map(
    ({ userId, email, organizationName }) => `  ${userId}  ${email}  ${organizationName}`,
  );
  throw new StartError(`choose a user with --user:\n${choices.join("\n")}`);
}

function rowOf({ id, kind, subjectId, email, organizationName, ...times }: OperatorToken): string[] {
  const owner = kind === "service_account" ? `service account ${subjectId}` : (email ?? subjectId);
  const { expiresAt, lastUsedAt, disabledAt } = times;
  return [
    id,
    owner,
    organizationName,
    `expires ${new Date(expiresAt).toISOString()}`,
    lastUsedAt === null ? "never used" : `last used ${new Date(lastUsedAt).toISOString()}`,
    ...(disabledAt === null ? [] : ["disabled"]),
  ];
}

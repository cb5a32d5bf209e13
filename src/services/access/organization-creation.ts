import { OrganizationRole } from "#gen/service/v1/organization_pb.js";
import { notFound } from "../../domain/error.ts";
import { requireNotBlocked } from "../../domain/identity/account.ts";
import { newLocalConfiguration } from "../../domain/runner/runner.ts";
import type { Keys } from "../../keys.ts";
import { findAccountByEmail, insertAccount } from "../../store/identity/account.ts";
import { findMembership, insertMember } from "../../store/identity/member.ts";
import { hadOrganization, hasOrganization, insertOrganization } from "../../store/identity/organization.ts";
import { insertRunner } from "../../store/runner/runner.ts";
import { OPERATOR, type Reader, type Store, type WriteTransaction } from "../../store/store.ts";
import { createPersonalToken } from "../identity/personal-token.ts";
import { createSignInLink } from "../identity/sign-in.ts";

export { findUsers } from "../../store/identity/member.ts";

/** The parameters of {@link createOrganizationWithToken}. */
export interface OrganizationCreationRequest {
  /** Name of the command, for the audit log. */
  readonly operation: string;
  readonly organizationName: string;
  /** Name of the administrator; an existing account keeps its name. */
  readonly accountName: string;
  readonly email: string;
  /** Description of the first token; empty by default. */
  readonly tokenDescription?: string;
  /** Validity of the first token, in milliseconds; 30 days by default. */
  readonly validForMs?: number;
}

/**
 * Creates an organization as the operator, with an administrator and that
 * administrator's first personal access token, in one transaction. If an account with
 * the email exists, it becomes the administrator; otherwise an account is created.
 */
export function createOrganizationWithToken(store: Store, keys: Keys, request: OrganizationCreationRequest) {
  const create = (tx: WriteTransaction) => insertOrganizationWithToken(tx, keys, request);
  return store.write(OPERATOR, request.operation, create, { locks: [null] });
}

/**
 * Like {@link createOrganizationWithToken}, for the organization of the first start.
 *
 * @returns undefined if an organization exists or existed: another server may have created the first one
 */
export function createFirstOrganization(store: Store, keys: Keys, request: OrganizationCreationRequest) {
  const create = async (tx: WriteTransaction) =>
    (await hasOrganization(tx.db)) || (await hadOrganization(tx.db))
      ? undefined
      : insertOrganizationWithToken(tx, keys, request);
  return store.write(OPERATOR, request.operation, create, { locks: [null] });
}

async function insertOrganizationWithToken(
  tx: WriteTransaction,
  keys: Keys,
  request: OrganizationCreationRequest,
) {
  const accountId = await findOrCreateAccount(tx, request.email, request.accountName);
  const { organization, member } = await insertOrganizationWithAdministrator(
    tx,
    request.organizationName,
    accountId,
  );
  const scope = { organizationId: organization.id };
  const userId = member.id;
  const token = await createPersonalToken(tx, scope, keys, {
    userId,
    description: request.tokenDescription ?? "",
    validForMs: request.validForMs ?? 0,
    readOnly: false,
  });
  return { organizationId: scope.organizationId, userId, accountId, token };
}

/**
 * Inserts an organization, its administrator, and the runner that represents its members' local runners.
 * @param userId user id of the administrator
 */
export async function insertOrganizationWithAdministrator(
  tx: WriteTransaction,
  name: string,
  accountId: string,
  userId = tx.newId(),
) {
  const organization = await insertOrganization(tx, { id: tx.newId(), name });
  const scope = { organizationId: organization.id };
  const member = await insertMember(tx, scope, {
    id: userId,
    account_id: accountId,
    role: OrganizationRole.ADMIN,
  });
  await insertRunner(tx, scope, newLocalConfiguration({ id: tx.newId(), now: tx.now }));
  return { organization, member };
}

/** The parameters of {@link createTokenAsOperator}. */
export interface OperatorTokenRequest {
  readonly userId: string;
  readonly description: string;
  /** In milliseconds, at most 90 days; 0 means 30 days. */
  readonly validForMs: number;
  /** Default false. */
  readonly readOnly?: boolean;
}

/**
 * Creates a personal access token for a user of any organization, as the operator.
 *
 * @returns the token's value, which is not stored
 * @throws DomainError NOT_FOUND; VALUE_UNUSABLE for a lifetime that is too long
 */
export function createTokenAsOperator(
  store: Store,
  keys: Keys,
  { userId, description, validForMs, readOnly = false }: OperatorTokenRequest,
): Promise<string> {
  const find = async (db: Reader) => {
    const member = await findMembership(db, userId);
    if (!member) throw notFound("user");
    return { organizationId: member.organization_id };
  };
  return store.write(
    OPERATOR,
    "chartroom token create",
    async (tx) =>
      createPersonalToken(tx, await find(tx.db), keys, { userId, description, validForMs, readOnly }),
    { locks: async (db) => [(await find(db)).organizationId] },
  );
}

/**
 * Creates a link with which a user of any organization signs in once, within 15 minutes, as the operator.
 *
 * @param operation name of the command, for the audit log
 * @returns the secret of the link, which is not stored
 * @throws DomainError NOT_FOUND
 */
export function createSignInLinkAsOperator(
  store: Store,
  keys: Keys,
  userId: string,
  operation: string,
): Promise<string> {
  const find = async (db: Reader) => {
    const member = await findMembership(db, userId);
    if (!member) throw notFound("user");
    return { organizationId: member.organization_id };
  };
  return store.write(
    OPERATOR,
    operation,
    async (tx) => createSignInLink(tx, await find(tx.db), keys, userId),
    { locks: async (db) => [(await find(db)).organizationId] },
  );
}

/**
 * Returns the id of the account with an email; creates the account if there is none.
 * An existing account keeps its name.
 *
 * @throws DomainError ACCOUNT_BLOCKED for a blocked account, which could not administer an organization
 */
export async function findOrCreateAccount(
  tx: WriteTransaction,
  email: string,
  name: string,
): Promise<string> {
  const existing = await findAccountByEmail(tx.db, email);
  if (existing) {
    requireNotBlocked(existing);
    return existing.id;
  }
  const id = tx.newId();
  await insertAccount(tx, { id, name, email });
  return id;
}

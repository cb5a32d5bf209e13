import { OrganizationRole } from "#gen/service/v1/organization_pb.js";
import { notFound } from "../../domain/error.ts";
import { requireNotBlocked } from "../../domain/identity/account.ts";
import { newLocalConfiguration } from "../../domain/runner/runner.ts";
import type { Keys } from "../../keys.ts";
import { findAccountByEmail, insertAccount } from "../../store/identity/account.ts";
import { findMembership, insertMember } from "../../store/identity/member.ts";
import { insertOrganization } from "../../store/identity/organization.ts";
import { insertRunner } from "../../store/runner/runner.ts";
import { OPERATOR, type Store, type WriteTransaction } from "../../store/store.ts";
import { createPersonalToken } from "../identity/personal-token.ts";

export { findUsers } from "../../store/identity/member.ts";

export interface NewOrganization {
  /** The command that founds it, for the audit log. */
  readonly operation: string;
  readonly organizationName: string;
  /** Name of the administrator; an account that exists keeps its own. */
  readonly accountName: string;
  readonly email: string;
  /** Description of the first token; empty by default. */
  readonly tokenDescription?: string;
  /** Validity of the first token, in milliseconds; 30 days by default. */
  readonly validForMs?: number;
}

/**
 * Makes an organization whole: with an administrator, the runner that stands
 * for its members' local runners, and a first personal access token. All of it
 * happens or none. An account that already has the email becomes the
 * administrator of this organization too.
 */
export function setUpOrganization(store: Store, keys: Keys, founding: NewOrganization) {
  return store.write(OPERATOR, founding.operation, async (tx) => {
    const accountId = await accountOf(tx, founding.email, founding.accountName);
    const { organization, member } = await insertWholeOrganization(tx, founding.organizationName, accountId);
    const scope = { organizationId: organization.id };
    const userId = member.id;
    const token = await createPersonalToken(tx, scope, keys, {
      userId,
      description: founding.tokenDescription ?? "",
      validForMs: founding.validForMs ?? 0,
      readOnly: false,
    });
    return { organizationId: scope.organizationId, userId, accountId, token };
  });
}

/** Makes an organization with its administrator and the runner that stands for its members' local runners. */
export async function insertWholeOrganization(tx: WriteTransaction, name: string, accountId: string) {
  const organization = await insertOrganization(tx, { id: tx.newId(), name });
  const scope = { organizationId: organization.id };
  const member = await insertMember(tx, scope, {
    id: tx.newId(),
    account_id: accountId,
    role: OrganizationRole.ADMIN,
  });
  await insertRunner(tx, scope, newLocalConfiguration({ id: tx.newId(), now: tx.now }));
  return { organization, member };
}

export interface TokenIssue {
  readonly userId: string;
  readonly description: string;
  /** In milliseconds, at most 90 days; 0 means 30 days. */
  readonly validForMs: number;
  /** Default false. */
  readonly readOnly?: boolean;
}

/**
 * Makes a personal access token for a user of any organization, as the operator.
 *
 * @returns the token's value, which is stored nowhere
 * @throws DomainError NOT_FOUND; VALUE_UNUSABLE for a token that would hold too long
 */
export function issueToken(
  store: Store,
  keys: Keys,
  { userId, description, validForMs, readOnly = false }: TokenIssue,
): Promise<string> {
  return store.write(OPERATOR, "chartroom token create", async (tx) => {
    const member = await findMembership(tx.db, userId);
    if (!member) throw notFound("user");
    const scope = { organizationId: member.organization_id };
    return createPersonalToken(tx, scope, keys, { userId, description, validForMs, readOnly });
  });
}

/**
 * Id of the account with an address, which is made when there is none; one that
 * exists keeps its name.
 *
 * @throws DomainError ACCOUNT_BLOCKED: an organization of a blocked account alone would have no administrator
 */
export async function accountOf(tx: WriteTransaction, email: string, name: string): Promise<string> {
  const known = await findAccountByEmail(tx.db, email);
  if (known) {
    requireNotBlocked(known);
    return known.id;
  }
  const id = tx.newId();
  await insertAccount(tx, { id, name, email });
  return id;
}

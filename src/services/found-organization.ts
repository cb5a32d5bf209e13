import { notFound } from "../domain/error.ts";
import { newLocalConfiguration } from "../domain/runner.ts";
import type { Keys } from "../keys.ts";
import { findAccountByEmail, insertAccount } from "../store/account.ts";
import { findMembership, insertMember } from "../store/member.ts";
import { insertOrganization } from "../store/organization.ts";
import { insertRunner } from "../store/runner.ts";
import { OPERATOR, type Store, type WriteTransaction } from "../store/store.ts";
import { createPersonalToken } from "./personal-token.ts";

export { findUsers } from "../store/member.ts";

/** Role of a member that may do everything in its organization. */
const ADMINISTRATOR = 1;

export interface Founding {
  /** The command that founds it, for the audit log. */
  readonly operation: string;
  readonly organizationName: string;
  /** Name of the administrator; an account that exists keeps its own. */
  readonly accountName: string;
  readonly email: string;
  /** What the first token is for; empty by default. */
  readonly tokenDescription?: string;
  /** How long the first token holds, in milliseconds; 30 days by default. */
  readonly validForMs?: number;
}

/**
 * Makes an organization whole: with an administrator, the runner that stands
 * for its members' local runners, and a first personal access token. All of it
 * happens or none. An account that already has the email becomes the
 * administrator of this organization too.
 */
export function foundOrganization(store: Store, keys: Keys, founding: Founding) {
  return store.write(OPERATOR, founding.operation, async (tx) => {
    const scope = { organizationId: tx.newId() };
    await insertOrganization(tx, { id: scope.organizationId, name: founding.organizationName });
    const accountId = await accountOf(tx, founding);
    const userId = tx.newId();
    await insertMember(tx, scope, { id: userId, account_id: accountId, role: ADMINISTRATOR });
    await insertRunner(tx, scope, newLocalConfiguration({ id: tx.newId(), now: tx.now }));
    const token = await createPersonalToken(tx, scope, keys, {
      userId,
      description: founding.tokenDescription ?? "",
      validForMs: founding.validForMs ?? 0,
      readOnly: false,
    });
    return { organizationId: scope.organizationId, userId, accountId, token };
  });
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

async function accountOf(tx: WriteTransaction, { accountName, email }: Founding): Promise<string> {
  const known = await findAccountByEmail(tx.db, email);
  if (known) return known.id;
  const id = tx.newId();
  await insertAccount(tx, { id, name: accountName, email });
  return id;
}

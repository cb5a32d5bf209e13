import { openData } from "../../src/commands/open-data.ts";
import type { Keys } from "../../src/keys.ts";
import { createPersonalToken } from "../../src/services/identity/personal-token.ts";
import { findAccountByEmail, insertAccount } from "../../src/store/identity/account.ts";
import { insertMember } from "../../src/store/identity/member.ts";
import { OPERATOR, type Store } from "../../src/store/store.ts";
import { dataConfigOf } from "./data-config.ts";
import type { ReachableServer } from "./server.ts";

/** A member and its token. */
export interface TestMember {
  readonly accountId: string;
  readonly userId: string;
  readonly token: string;
}

/** The person's address and role, and the organization. */
export interface NewMember {
  readonly organizationId: string;
  /** An existing account with this address joins; otherwise an account is created. */
  readonly email: string;
  /** Default false. */
  readonly administrator?: boolean;
}

/** Creates a member in an open store. */
export function insertTestMember(store: Store, keys: Keys, member: NewMember): Promise<TestMember> {
  const { organizationId, email, administrator = false } = member;
  return store.write(OPERATOR, "test", async (tx) => {
    const scope = { organizationId };
    let accountId = (await findAccountByEmail(tx.db, email))?.id;
    if (accountId === undefined) {
      accountId = tx.newId();
      await insertAccount(tx, { id: accountId, name: `The person of ${email}`, email });
    }
    const userId = tx.newId();
    await insertMember(tx, scope, { id: userId, account_id: accountId, role: administrator ? 1 : 2 });
    const template = { userId, description: "test", validForMs: 0, readOnly: false };
    return { accountId, userId, token: await createPersonalToken(tx, scope, keys, template) };
  });
}

/** Creates a member in the data of a running server, as an operator would. */
export function addMember(server: Pick<ReachableServer, "dataDir">, member: NewMember): Promise<TestMember> {
  return withServerData(server, (store, keys) => insertTestMember(store, keys, member));
}

/**
 * Works on the data folder of a server while the server runs, as a command of the operator does. What the server is asked
 * afterwards sees what was written.
 */
export async function withServerData<T>(
  { dataDir }: Pick<ReachableServer, "dataDir">,
  fn: (store: Store, keys: Keys) => Promise<T>,
): Promise<T> {
  const { store, keys } = await openData(dataConfigOf(dataDir));
  try {
    return await fn(store, keys);
  } finally {
    await store.close();
  }
}

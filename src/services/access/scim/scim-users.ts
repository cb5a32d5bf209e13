import { OrganizationRole } from "#gen/service/v1/organization_pb.js";
import { notFound } from "../../../domain/error.ts";
import type { Caller } from "../../../domain/identity/caller.ts";
import { patchChanges, type ScimFilter } from "../../../domain/identity/scim/scim-json.ts";
import {
  patchedUserValues,
  requireAddressFree,
  requireOwnAccount,
  type ScimUser,
  type ScimUserValues,
  scimUserValues,
} from "../../../domain/identity/scim/scim-user.ts";
import { fold } from "../../../domain/text/fold.ts";
import {
  findAccount,
  findAccountByEmail,
  findMemberships,
  insertAccount,
  type StoredAccount,
  updateAccount,
} from "../../../store/identity/account.ts";
import { findMember, findMemberOfAccount, updateMember } from "../../../store/identity/member.ts";
import { findScimUser, findScimUserPage } from "../../../store/identity/scim-user.ts";
import type { Reader, Scope, WriteTransaction } from "../../../store/store.ts";
import { liftSuspension, suspendMember } from "../member-suspension.ts";
import { joinOrganization, removeMembership } from "../membership.ts";
import { type ScimDependencies, writeAsProvisioner } from "./provisioner.ts";

/** Returns a page of the users of the caller's organization, and their total number. */
export async function listScimUsers(
  { store }: ScimDependencies,
  caller: Caller,
  filter: ScimFilter | undefined,
  offset: number,
  count: number,
) {
  const db = store.reader;
  const { attribute, value } = filter ?? {};
  if (attribute === "id") {
    const user = await findScimUser(db, caller, (value ?? "").toLowerCase());
    return { resources: user ? [user].slice(offset, offset + count) : [], total: user ? 1 : 0 };
  }
  const condition =
    attribute === "externalid"
      ? { externalId: value ?? "" }
      : { userName: value === undefined ? undefined : fold(value) };
  const { users, total } = await findScimUserPage(db, caller, condition, offset, count);
  return { resources: users, total };
}

/** Returns a user. @throws DomainError NOT_FOUND */
export async function getScimUser({ store }: ScimDependencies, caller: Caller, id: string) {
  return getUser(store.reader, caller, id);
}

/**
 * Creates the account of a user as a member of the caller's organization, or restores the membership of a user who
 * left.
 *
 * @throws DomainError VALUE_TAKEN when somebody has the address, also in another organization
 */
export function createScimUser(deps: ScimDependencies, caller: Caller, body: unknown): Promise<ScimUser> {
  const values = scimUserValues(body);
  return writeAsProvisioner(deps, caller, "scim/CreateUser", async (tx) => {
    const userName = values.userName.toLowerCase();
    const account =
      (await findAccountByEmail(tx.db, values.userName)) ?? (await findAccountByEmail(tx.db, userName));
    const former = account && (await findMemberOfAccount(tx.db, caller, account.id));
    // A person with an account elsewhere must join with an invite: no organization may add people without their consent.
    requireAddressFree(former?.left_at == null ? account : undefined);
    requireAddressFree(await findUserByAddress(tx.db, caller, userName));
    const accountId = account?.id ?? tx.newId();
    const made = { id: accountId, name: values.name, email: userName };
    if (!account) await insertAccount(tx, made, caller.organizationId);
    const member = await joinOrganization(tx, caller, accountId, OrganizationRole.MEMBER);
    if (!member) throw notFound("user");
    return setValues(tx, caller, member.id, { ...values, userName: account?.email ?? userName });
  });
}

/** Applies a PUT to a user. @throws DomainError NOT_FOUND, VALUE_TAKEN, VALUE_UNUSABLE, LAST_ADMINISTRATOR */
export function replaceScimUser(deps: ScimDependencies, caller: Caller, id: string, body: unknown) {
  const values = scimUserValues(body);
  return change(deps, caller, "scim/ReplaceUser", id, () => values);
}

/** Applies a PATCH to a user. @throws DomainError as replaceScimUser */
export function patchScimUser(deps: ScimDependencies, caller: Caller, id: string, body: unknown) {
  const changes = patchChanges(body);
  return change(deps, caller, "scim/PatchUser", id, (before) => patchedUserValues(before, changes));
}

/** Ends the membership of a user in the caller's organization. @throws DomainError NOT_FOUND, LAST_ADMINISTRATOR */
export async function deleteScimUser(deps: ScimDependencies, caller: Caller, id: string): Promise<void> {
  await writeAsProvisioner(deps, caller, "scim/DeleteUser", (tx) => removeMembership(tx, caller, id));
  await deps.revocationMonitor.check();
}

async function change(
  deps: ScimDependencies,
  caller: Caller,
  operation: string,
  id: string,
  valuesOf: (before: ScimUser) => ScimUserValues,
): Promise<ScimUser> {
  const user = await writeAsProvisioner(deps, caller, operation, async (tx) =>
    setValues(tx, caller, id, valuesOf(await getUser(tx.db, caller, id))),
  );
  // Ends the streams of a user that is no longer active before the response is sent.
  await deps.revocationMonitor.check();
  return user;
}

async function setValues(
  tx: WriteTransaction,
  scope: Scope,
  id: string,
  values: ScimUserValues,
): Promise<ScimUser> {
  const before = await getUser(tx.db, scope, id);
  const member = await findMember(tx.db, scope, id);
  const account = member && (await findAccount(tx.db, member.account_id));
  if (!account) throw notFound("user");
  await setAccountValues(tx, scope, account, values);
  if (before.externalId !== values.externalId)
    await updateMember(tx, scope, member, { ...member, external_id: values.externalId || null });
  // A blocked account stays blocked: only administrators block and unblock.
  if (values.active === true) await liftSuspension(tx, scope, id);
  if (values.active === false) await suspendMember(tx, scope, id);
  return getUser(tx.db, scope, id);
}

/** Sets the name and address of an account that is a member only of this organization and not an administrator. */
async function setAccountValues(
  tx: WriteTransaction,
  scope: Scope,
  account: StoredAccount,
  values: ScimUserValues,
): Promise<void> {
  const email = fold(values.userName) === fold(account.email) ? account.email : values.userName.toLowerCase();
  if (email === account.email && values.name === account.name) return;
  const memberships = await findMemberships(tx.db, account.id);
  // A sign-in may find the account by its address, so a provider must not change that of an administrator.
  const isOwn = memberships.length <= 1 && memberships.every(({ role }) => role === OrganizationRole.MEMBER);
  if (email !== account.email) {
    requireOwnAccount(isOwn);
    requireAddressFree(await findAccountByEmail(tx.db, email));
    requireAddressFree(await findUserByAddress(tx.db, scope, email));
  }
  // This provider must not change a name that other organizations also use.
  if (isOwn) await updateAccount(tx, account, { name: values.name, email }, scope.organizationId);
}

/** Returns the organization's user with an address. Letter case is ignored, unlike in the search for accounts. */
async function findUserByAddress(db: Reader, scope: Scope, address: string): Promise<ScimUser | undefined> {
  const { users } = await findScimUserPage(db, scope, { userName: fold(address) }, 0, 1);
  return users[0];
}

async function getUser(db: Reader, scope: Scope, id: string): Promise<ScimUser> {
  const user = await findScimUser(db, scope, id);
  if (!user) throw notFound("user");
  return user;
}

import { OrganizationRole } from "#gen/service/v1/organization_pb.js";
import type { DataConfig } from "../config/config.ts";
import { joinOrganization, removeMembership, setMemberRole } from "../services/access/membership.ts";
import { createSignInLinkAsOperator, findOrCreateAccount } from "../services/access/organization-creation.ts";
import { createPersonalToken } from "../services/identity/personal-token.ts";
import { findAccountByEmail } from "../store/identity/account.ts";
import type { StoredMember } from "../store/identity/member.ts";
import { findMemberOfAccount, findUsers } from "../store/identity/member.ts";
import { findOrganization } from "../store/identity/organization.ts";
import { OPERATOR, type Reader, type Scope, type WriteTransaction, within } from "../store/store.ts";
import type { Listing } from "./definitions/command-line.ts";
import { openExistingData, rethrowDomainError } from "./open-data.ts";
import { resolveOrganization } from "./organization.ts";
import { checkPerson } from "./person.ts";
import { serverUrlOf, type UrlConfig } from "./server-url.ts";
import { StartError } from "./start-error.ts";

/** Identifies one membership. */
export interface NamedMember {
  /** The id or name of the organization; undefined for the only one. */
  readonly organization?: string | undefined;
  /** The email address of the account. */
  readonly email: string;
}

export interface RoleOptions extends NamedMember {
  readonly role: "administrator" | "member";
}

export interface MemberOptions extends RoleOptions {
  readonly name: string;
  /** True to accept an account whose address was set by another organization's SCIM. */
  readonly trustDirectory: boolean;
}

/**
 * Creates a link that signs a person in once, within 15 minutes. Works while a server runs.
 *
 * @param named user id, email address or name of a member
 * @param organization id or name, needed when several organizations have such a member
 * @returns a line with the link, whose secret is stored nowhere
 * @throws StartError when no member matches, or more than one
 */
export async function printSignInLink(
  config: DataConfig & UrlConfig,
  named: string,
  organization: string | undefined,
): Promise<string> {
  const { store, keys } = await openExistingData(config);
  try {
    const id = organization === undefined ? undefined : (await resolveOrganization(store, organization)).id;
    const fitting = (await findUsers(store.reader)).filter(
      ({ userId, email, name, organizationId }) =>
        (id === undefined || organizationId === id) &&
        (userId === named.toLowerCase() || email === named || name === named),
    );
    const [user, other] = fitting;
    if (!user) throw new StartError(`no member has the id, mail address or name ${named}`);
    if (other) {
      const choices = fitting.map((each) => `  ${each.userId}  ${each.email}  ${each.organizationName}`);
      throw new StartError(
        `more than one member is called that: choose one by its id\n${choices.join("\n")}`,
      );
    }
    const link = await createSignInLinkAsOperator(store, keys, user.userId, "chartroom member sign-in").catch(
      rethrowDomainError,
    );
    return `${serverUrlOf(config)}/sign-in#${link}\n`;
  } finally {
    await store.close();
  }
}

const ROLES = { administrator: OrganizationRole.ADMIN, member: OrganizationRole.MEMBER } as const;

/**
 * Lists the members of an organization, oldest first: user id, role, email address, name, and whether they are
 * suspended or blocked.
 *
 * @throws StartError when no organization matches
 */
export async function listMembers(config: DataConfig, named: string | undefined): Promise<Listing> {
  const { store } = await openExistingData(config);
  try {
    const { id } = await resolveOrganization(store, named);
    const users = (await findUsers(store.reader)).filter(({ organizationId }) => organizationId === id);
    const rows = users.map(({ userId, role, email, name, suspendedAt, blockedAt }) => {
      const roleName = role === ROLES.administrator ? "administrator" : "member";
      // Comes before the text that people choose themselves, which could contain the same words.
      const state = blockedAt !== null ? ", blocked" : suspendedAt !== null ? ", suspended" : "";
      return [userId, (roleName + state).padEnd("administrator".length), email, name];
    });
    return { headings: ["USER", "ROLE", "EMAIL", "NAME"], rows };
  } finally {
    await store.close();
  }
}

/**
 * Gives a member another role as the operator.
 *
 * @returns the member's new role, in a line
 * @throws StartError when there is no such member, or it is the last
 *   administrator
 */
export function setRole(config: DataConfig, { role, ...named }: RoleOptions): Promise<string> {
  return changeMember(config, "chartroom member role", named, async (tx, scope, { id }) => {
    await setMemberRole(tx, scope, id, ROLES[role]);
    return `${named.email} is ${role === "administrator" ? "an administrator" : "a member"} now\n`;
  });
}

/**
 * Ends a membership as the operator, like RemoveMember.
 *
 * @returns a line that confirms it
 * @throws StartError when there is no such member, or it is the last administrator
 */
export function removeMember(config: DataConfig, named: NamedMember): Promise<string> {
  return changeMember(config, "chartroom member remove", named, async (tx, scope, { id }) => {
    await removeMembership(tx, scope, id);
    return `${named.email} is no member any more\n`;
  });
}

async function changeMember(
  config: DataConfig,
  operation: string,
  { organization: named, email }: NamedMember,
  change: (tx: WriteTransaction, scope: Scope, member: StoredMember) => Promise<string>,
): Promise<string> {
  const { store } = await openExistingData(config);
  try {
    const organization = await resolveOrganization(store, named);
    const scope = { organizationId: organization.id };
    const changeNamed = async (tx: WriteTransaction) => {
      const member = await findMemberByEmail(tx.db, scope, email);
      if (!member) throw new StartError(`${email} is no member of ${organization.name}`);
      return change(tx, scope, member);
    };
    return await store.write(OPERATOR, operation, changeNamed, within(scope)).catch(rethrowDomainError);
  } finally {
    await store.close();
  }
}

/** Requires that no other organization's SCIM controls the account's address. @throws StartError */
async function requireOwnAddress(db: Reader, { organizationId }: Scope, email: string): Promise<void> {
  const setBy = (await findAccountByEmail(db, email))?.scim_organization_id ?? organizationId;
  if (setBy === organizationId) return;
  const { name } = (await findOrganization(db, { organizationId: setBy })) ?? { name: setBy };
  throw new StartError(
    `the account of ${email} was made by SCIM of the organization ${name}, which alone says whose address that is: invite the person, or give --trust-directory`,
  );
}

async function findMemberByEmail(db: Reader, scope: Scope, email: string): Promise<StoredMember | undefined> {
  const account = await findAccountByEmail(db, email);
  const member = account && (await findMemberOfAccount(db, scope, account.id));
  return member?.left_at === null ? member : undefined;
}

/**
 * Adds a person to an organization as the operator, with a first token. Creates an account if there is none. Works
 * while a server runs.
 *
 * @returns the token's value, which is stored nowhere
 * @throws StartError when no organization matches, or the account is blocked or already a member
 */
export async function addMember(
  config: DataConfig,
  { organization: named, email, name, role, trustDirectory }: MemberOptions,
): Promise<string> {
  checkPerson(email, name);
  const { store, keys } = await openExistingData(config);
  try {
    const organization = await resolveOrganization(store, named);
    const scope = { organizationId: organization.id };
    const join = async (tx: WriteTransaction) => {
      if (!trustDirectory) await requireOwnAddress(tx.db, scope, email);
      const accountId = await findOrCreateAccount(tx, email, name);
      const member = await joinOrganization(tx, scope, accountId, ROLES[role]);
      if (!member) throw new StartError(`${email} is a member of ${organization.name} already`);
      return createPersonalToken(tx, scope, keys, {
        userId: member.id,
        description: "first token",
        validForMs: 0,
        readOnly: false,
      });
    };
    // The account, which may be new, must not be blocked during this.
    const locks = [scope.organizationId, null];
    const token = await store
      .write(OPERATOR, "chartroom member add", join, { locks })
      .catch(rethrowDomainError);
    return `${token}\n`;
  } finally {
    await store.close();
  }
}

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Account, AccountSchema } from "#gen/service/v1/account_pb.js";
import { accountBlocked } from "../error.ts";

/** An account with its login data. Times are milliseconds since 1970 UTC. */
export interface AccountFacts {
  readonly id: string;
  readonly name: string;
  readonly email: string;
  readonly created_at: number;
  readonly updated_at: number;
}

/** One organization that the account is a member of. */
export interface MembershipFacts {
  readonly userId: string;
  /** OrganizationRole by number. */
  readonly role: number;
  readonly organizationId: string;
  readonly organizationName: string;
  readonly memberCount: number;
}

/** Requires that an account is not blocked. @throws DomainError ACCOUNT_BLOCKED */
export function requireNotBlocked(account: { readonly blocked_at: number | null }): void {
  if (account.blocked_at !== null) throw accountBlocked();
}

/** Returns the account in the form that its own person gets, who acts in one of its organizations. */
export function accountMessage(
  account: AccountFacts,
  memberships: readonly MembershipFacts[],
  organizationId: string,
): Account {
  return create(AccountSchema, {
    id: account.id,
    name: account.name,
    email: account.email,
    createdAt: timestampFromMs(account.created_at),
    updatedAt: timestampFromMs(account.updated_at),
    memberships: memberships.map((each) => ({
      userId: each.userId,
      userRole: each.role,
      organizationId: each.organizationId,
      organizationName: each.organizationName,
      organizationMemberCount: each.memberCount,
    })),
    organizationId,
  });
}

/**
 * Returns a mail address with its domain in lower case, so that addresses of one mailbox are equal texts. Letter case
 * matters in local parts, but not in domains (RFC 5321, 2.4).
 */
export function mailboxOf(email: string): string {
  const at = email.lastIndexOf("@") + 1;
  return email.slice(0, at) + toLowerAscii(email.slice(at));
}

/** Returns a text with A to Z in lower case. Other letters stay: some would become the lower case of a different letter. */
export function toLowerAscii(text: string): string {
  return text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type OrganizationMember,
  OrganizationMemberSchema,
  OrganizationRole,
} from "#gen/service/v1/organization_pb.js";
import {
  type ListMembersRequest_Filter,
  type ListMembersRequest_Sort,
  ListMembersRequest_SortField,
} from "#gen/service/v1/organization_service_pb.js";
import { SortOrder } from "#gen/service/v1/pagination_pb.js";
import { type User, UserSchema, UserStatus } from "#gen/service/v1/user_pb.js";
import { lastAdministrator, permissionDenied, valueUnusable } from "../error.ts";

/**
 * The login provider of every account so far: a token that the command line issued (contract,
 * OrganizationMember).
 */
const LOGIN_PROVIDER = "token";

/** Statuses that a list shows when the request names none (contract, ListMembersRequest). */
const DEFAULT_STATUSES: readonly UserStatus[] = [UserStatus.ACTIVE, UserStatus.SUSPENDED];

/** A member with its account. Times are milliseconds since 1970 UTC. */
export interface MemberFacts {
  readonly userId: string;
  /** OrganizationRole by number. */
  readonly role: number;
  readonly joinedAt: number;
  readonly leftAt: number | null;
  /** Set while it is suspended in the organization. */
  readonly suspendedAt: number | null;
  readonly name: string;
  readonly email: string;
  readonly blockedAt: number | null;
}

export interface MemberOrder {
  /** Names are compared without regard to case. */
  readonly field: "joining" | "name";
  readonly direction: "asc" | "desc";
}

/**
 * Requires that an organization keeps an administrator when one of them leaves. The others are counted
 * in the transaction of the change, so that two concurrent changes cannot remove the last two.
 * @throws DomainError LAST_ADMINISTRATOR
 */
export function requireOtherAdministrators(organizationId: string, others: number): void {
  if (others === 0) throw lastAdministrator(organizationId);
}

/** Requires that a user that leaves is the caller. @throws DomainError PERMISSION_DENIED */
export function requireOwnMembership(userId: string, callerId: string): void {
  if (userId === callerId) return;
  throw permissionDenied(
    "leave_organization",
    "only members themselves can leave: remove others with RemoveMember",
  );
}

/** Requires that a request names a role. @throws DomainError VALUE_UNUSABLE */
export function requireRole(role: OrganizationRole): void {
  if (role === OrganizationRole.UNSPECIFIED) throw valueUnusable("role", "name the role to set");
}

/** Returns a member as the contract shows it. */
export function memberMessage(member: MemberFacts): OrganizationMember {
  return create(OrganizationMemberSchema, {
    userId: member.userId,
    role: member.role,
    memberSince: timestampFromMs(member.joinedAt),
    fullName: member.name,
    email: member.email,
    status: statusOf(member),
    loginProvider: LOGIN_PROVIDER,
  });
}

/** Returns the statuses that a list shows. */
export function requestedStatuses(filter: ListMembersRequest_Filter | undefined): readonly UserStatus[] {
  return filter?.statuses.length ? filter.statuses : DEFAULT_STATUSES;
}

/** Returns the order of a list; equal names and times are ordered by user id. */
export function memberOrder(sort: ListMembersRequest_Sort | undefined): MemberOrder {
  return {
    field: sort?.field === ListMembersRequest_SortField.NAME ? "name" : "joining",
    direction: sort?.order === SortOrder.DESC ? "desc" : "asc",
  };
}

/** Returns a member as a user of the contract. */
export function userMessage(organizationId: string, member: MemberFacts): User {
  return create(UserSchema, {
    id: member.userId,
    organizationId,
    name: member.name,
    createdAt: timestampFromMs(member.joinedAt),
    status: statusOf(member),
    email: member.email,
  });
}

function statusOf({ leftAt, blockedAt, suspendedAt }: MemberFacts): UserStatus {
  if (leftAt !== null) return UserStatus.LEFT;
  return blockedAt === null && suspendedAt === null ? UserStatus.ACTIVE : UserStatus.SUSPENDED;
}

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type OrganizationMember, OrganizationMemberSchema } from "#gen/service/v1/organization_pb.js";
import {
  type ListMembersRequest_Filter,
  type ListMembersRequest_Sort,
  ListMembersRequest_SortField,
} from "#gen/service/v1/organization_service_pb.js";
import { SortOrder } from "#gen/service/v1/pagination_pb.js";
import { UserStatus } from "#gen/service/v1/user_pb.js";
import { fold } from "./fold.ts";

/** How every account signs in so far: with a token that the command line made (contract, OrganizationMember). */
const LOGIN_PROVIDER = "token";

/** Statuses that a list shows when none is asked for (contract, ListMembersRequest). */
const DEFAULT_STATUSES: readonly UserStatus[] = [UserStatus.ACTIVE, UserStatus.SUSPENDED];

/** A member with its account. Times are milliseconds since 1970 UTC. */
export interface MemberFacts {
  readonly userId: string;
  /** OrganizationRole by number. */
  readonly role: number;
  readonly joinedAt: number;
  readonly leftAt: number | null;
  readonly name: string;
  readonly email: string;
  readonly blockedAt: number | null;
}

/** A member as the contract shows it. */
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

/** Whether a list with this filter shows the member. */
export function isAskedFor(member: MemberFacts, filter: ListMembersRequest_Filter | undefined): boolean {
  const statuses = filter?.statuses.length ? filter.statuses : DEFAULT_STATUSES;
  return (
    statuses.includes(statusOf(member)) &&
    (!filter?.roles.length || filter.roles.includes(member.role)) &&
    (!filter?.userIds.length || filter.userIds.includes(member.userId)) &&
    matches(member, fold(filter?.search ?? ""))
  );
}

/** Compares members in the order that a list asks for; equal names and times stand by user id. */
export function memberOrder(
  sort: ListMembersRequest_Sort | undefined,
): (one: MemberFacts, other: MemberFacts) => number {
  const direction = sort?.order === SortOrder.DESC ? -1 : 1;
  const byName = sort?.field === ListMembersRequest_SortField.NAME;
  return (one, other) => {
    const first = byName ? compare(fold(one.name), fold(other.name)) : compare(one.joinedAt, other.joinedAt);
    return direction * (first || compare(one.userId, other.userId));
  };
}

function statusOf({ leftAt, blockedAt }: MemberFacts): UserStatus {
  if (leftAt !== null) return UserStatus.LEFT;
  return blockedAt === null ? UserStatus.ACTIVE : UserStatus.SUSPENDED;
}

function matches({ name, email, userId }: MemberFacts, search: string): boolean {
  return search === "" || [name, email, userId].some((text) => fold(text).includes(search));
}

/** By code units, which the same texts always come out of in the same order. */
function compare<T extends string | number>(one: T, other: T): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

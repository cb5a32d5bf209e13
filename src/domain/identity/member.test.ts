import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { OrganizationRole } from "#gen/service/v1/organization_pb.js";
import {
  ListMembersRequest_FilterSchema,
  ListMembersRequest_SortSchema,
  ListMembersRequest_SortField as SortField,
} from "#gen/service/v1/organization_service_pb.js";
import { SortOrder } from "#gen/service/v1/pagination_pb.js";
import { UserStatus } from "#gen/service/v1/user_pb.js";
import { type MemberFacts, memberMessage, memberOrder, requestedStatuses } from "./member.ts";

const MEMBER: MemberFacts = {
  userId: "0190c0de-0000-7000-8000-00000000000a",
  role: OrganizationRole.MEMBER,
  joinedAt: 1000,
  leftAt: null,
  name: "Ada",
  email: "ada@example.org",
  blockedAt: null,
  suspendedAt: null,
};

describe("the status of a member", () => {
  const statusOf = (member: Partial<MemberFacts>) => memberMessage({ ...MEMBER, ...member }).status;

  test("is what its account and its membership say, and having left goes before being blocked", () => {
    expect(statusOf({})).toBe(UserStatus.ACTIVE);
    expect(statusOf({ blockedAt: 1 })).toBe(UserStatus.SUSPENDED);
    expect(statusOf({ leftAt: 1 })).toBe(UserStatus.LEFT);
    expect(statusOf({ leftAt: 1, blockedAt: 1 })).toBe(UserStatus.LEFT);
  });
});

describe("a list of members", () => {
  test("leaves out only those that left while no status is asked for", () => {
    const statuses = [UserStatus.ACTIVE, UserStatus.SUSPENDED];
    expect(requestedStatuses(undefined)).toEqual(statuses);
    expect(requestedStatuses(create(ListMembersRequest_FilterSchema))).toEqual(statuses);
    const left = create(ListMembersRequest_FilterSchema, { statuses: [UserStatus.LEFT] });
    expect(requestedStatuses(left)).toEqual([UserStatus.LEFT]);
  });

  test("is by joining, ascending unless said otherwise", () => {
    const order = (sort?: object) => memberOrder(sort && create(ListMembersRequest_SortSchema, sort));
    const joining = { field: "joining", direction: "asc" };
    expect([order(), order({}), order({ field: SortField.DATE_JOINED })]).toEqual([
      joining,
      joining,
      joining,
    ]);
    expect(order({ field: SortField.NAME, order: SortOrder.DESC })).toEqual({
      field: "name",
      direction: "desc",
    });
  });
});

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
import { isAskedFor, type MemberFacts, memberMessage, memberOrder } from "./member.ts";

const MEMBER: MemberFacts = {
  userId: "0190c0de-0000-7000-8000-00000000000a",
  role: OrganizationRole.MEMBER,
  joinedAt: 1000,
  leftAt: null,
  name: "Ada",
  email: "ada@example.org",
  blockedAt: null,
};

const asked = (member: Partial<MemberFacts>, filter?: object) =>
  isAskedFor({ ...MEMBER, ...member }, filter && create(ListMembersRequest_FilterSchema, filter));

describe("the status of a member", () => {
  const statusOf = (member: Partial<MemberFacts>) => memberMessage({ ...MEMBER, ...member }).status;

  test("is what its account and its membership say, and having left goes before being blocked", () => {
    expect(statusOf({})).toBe(UserStatus.ACTIVE);
    expect(statusOf({ blockedAt: 1 })).toBe(UserStatus.SUSPENDED);
    expect(statusOf({ leftAt: 1 })).toBe(UserStatus.LEFT);
    expect(statusOf({ leftAt: 1, blockedAt: 1 })).toBe(UserStatus.LEFT);
  });
});

describe("a filter of members", () => {
  test("leaves out only those that left while no status is asked for", () => {
    for (const filter of [undefined, {}]) {
      expect([asked({}, filter), asked({ blockedAt: 1 }, filter), asked({ leftAt: 1 }, filter)]).toEqual([
        true,
        true,
        false,
      ]);
    }
  });

  test("combines its fields with AND and the values of one with OR", () => {
    const statuses = [UserStatus.LEFT, UserStatus.SUSPENDED];
    expect([asked({ leftAt: 1 }, { statuses }), asked({}, { statuses })]).toEqual([true, false]);
    expect(asked({ leftAt: 1 }, { statuses, roles: [OrganizationRole.ADMIN] })).toBe(false);
    expect(asked({}, { roles: [OrganizationRole.ADMIN, OrganizationRole.MEMBER] })).toBe(true);
    expect(asked({}, { userIds: [MEMBER.userId, "other"], search: "ADA@" })).toBe(true);
    expect(asked({}, { userIds: ["other"], search: "ada" })).toBe(false);
  });

  test("finds nobody by the role or status that no member has", () => {
    expect(asked({}, { roles: [OrganizationRole.UNSPECIFIED] })).toBe(false);
    expect(asked({}, { statuses: [UserStatus.UNSPECIFIED] })).toBe(false);
  });
});

describe("the order of members", () => {
  const [ada, bob, adaToo] = [
    { ...MEMBER, userId: "1", name: "ada", joinedAt: 3 },
    { ...MEMBER, userId: "2", name: "Bob", joinedAt: 1 },
    { ...MEMBER, userId: "3", name: "ADA", joinedAt: 3 },
  ] as const;
  const ordered = (sort?: object) =>
    [bob, adaToo, ada]
      .toSorted(memberOrder(sort && create(ListMembersRequest_SortSchema, sort)))
      .map(({ userId }) => userId);

  test("is by joining and by id, ascending unless said otherwise, and exactly mirrored", () => {
    expect(ordered()).toEqual(["2", "1", "3"]);
    expect(ordered({ field: SortField.DATE_JOINED, order: SortOrder.DESC })).toEqual(["3", "1", "2"]);
  });

  test("is by name without regard to case when asked for", () => {
    expect(ordered({ field: SortField.NAME })).toEqual(["1", "3", "2"]);
    expect(ordered({ field: SortField.NAME, order: SortOrder.DESC })).toEqual(["2", "3", "1"]);
  });
});

import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { ResourceType } from "#gen/service/v1/event_pb.js";
import {
  AgentPolicySchema,
  ConversationSharingPolicy,
  OrganizationPoliciesSchema,
} from "#gen/service/v1/organization_pb.js";
import type { Caller, Role } from "../identity/caller.ts";
import type { Policies } from "../policy/policies.ts";
import type { EventDescription } from "../record/event-filter.ts";
import { mayReadEvent } from "./event-reading.ts";

const policies = (conversationSharingPolicy: ConversationSharingPolicy) =>
  ({
    effective: create(OrganizationPoliciesSchema, {
      agentPolicy: create(AgentPolicySchema, { conversationSharingPolicy }),
    }),
  }) as unknown as Policies;
const CLOSED = policies(ConversationSharingPolicy.UNSPECIFIED);
const SHARED = policies(ConversationSharingPolicy.ORGANIZATION);

const caller = (role: Role, accountId = "") => ({ role, accountId, subject: { id: "me" } }) as Caller;
const event = (resourceType: ResourceType, more: Partial<EventDescription> = {}): EventDescription => ({
  resourceType,
  resourceId: "it",
  creatorId: "somebody",
  ownerId: null,
  environmentId: null,
  ...more,
});

const RECORDED = [
  7, 8, 31, 2, 9, 3, 1, 15, 11, 24, 50, 1000, 33, 34, 35, 37, 19, 21, 13, 46, 47, 1001, 16, 23, 25, 44, 1002,
  1004,
] as const;
const types = RECORDED.map((number) => number as ResourceType);

/** Kinds of resources whose events a role receives when others made them. */
const received = (role: Role, effective = CLOSED) =>
  types
    .filter((type) => mayReadEvent(effective, caller(role), event(type)))
    .map((type) => ResourceType[type]);

describe("the events of resources that others made", () => {
  const everybody = [
    "AGENT",
    "ENVIRONMENT",
    "ENVIRONMENT_CLASS",
    "ORGANIZATION",
    "ORGANIZATION_POLICY",
    "ORGANIZATION_SECRET",
    "PREBUILD",
    "PROJECT",
    "ROLE_ASSIGNMENT",
    "RUNNER",
    "SECRET",
    "SECURITY_POLICY",
    "SERVICE_ACCOUNT",
    "USER",
    "WORKFLOW",
    "WORKFLOW_EXECUTION",
    "WORKFLOW_EXECUTION_ACTION",
  ];

  test("are all for administrators", () => {
    expect(received("administrator")).toHaveLength(types.length);
  });

  test.each<[Role]>([["member"], ["service_account"]])("are for a %s as far as they are shared", (role) => {
    expect(received(role).toSorted()).toEqual(everybody);
    expect(received(role, SHARED).toSorted()).toEqual(
      [...everybody, "AGENT_EXECUTION", "APPROVAL"].toSorted(),
    );
  });

  test.each<[Role]>([["runner"], ["environment"], ["exchange"]])("are none for a %s", (role) => {
    expect(received(role, SHARED)).toEqual([]);
  });

  test("of a type that nobody has decided about are for administrators alone", () => {
    expect(mayReadEvent(SHARED, caller("member"), event(ResourceType.WEBHOOK))).toBe(false);
  });
});

describe("the events of what is one's own", () => {
  const { ACCOUNT, AGENT_EXECUTION, HOST_AUTHENTICATION_TOKEN } = ResourceType;
  const { PERSONAL_ACCESS_TOKEN, SERVICE_ACCOUNT_TOKEN } = ResourceType;

  test.each([AGENT_EXECUTION, HOST_AUTHENTICATION_TOKEN, PERSONAL_ACCESS_TOKEN, SERVICE_ACCOUNT_TOKEN])(
    "of the type %d are received, and not those whose owner is unknown",
    (type) => {
      expect(mayReadEvent(CLOSED, caller("member"), event(type, { ownerId: "me" }))).toBe(true);
      expect(mayReadEvent(CLOSED, caller("member"), event(type, { ownerId: null }))).toBe(false);
    },
  );

  test("tokens of service accounts are received by who made them", () => {
    const made = { creatorId: "me", ownerId: "bot" };
    expect(mayReadEvent(CLOSED, caller("member"), event(SERVICE_ACCOUNT_TOKEN, made))).toBe(true);
    expect(mayReadEvent(CLOSED, caller("member"), event(PERSONAL_ACCESS_TOKEN, made))).toBe(false);
  });

  test("an account is received by its users", () => {
    const own = event(ACCOUNT, { resourceId: "account" });
    expect(mayReadEvent(CLOSED, caller("member", "account"), own)).toBe(true);
    expect(mayReadEvent(CLOSED, caller("member", "another"), own)).toBe(false);
    expect(mayReadEvent(CLOSED, caller("service_account"), event(ACCOUNT, { resourceId: "" }))).toBe(false);
  });
});

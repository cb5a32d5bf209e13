import { create } from "@bufbuild/protobuf";
import { expect, test } from "@jest/globals";
import { ToolKind } from "#gen/service/v1/approval_pb.js";
import { OrganizationPoliciesSchema } from "#gen/service/v1/organization_pb.js";
import { ApprovalEffect as Effect, RunOrigin as Origin } from "./approval-policy.ts";
import { rulingOnDescent } from "./descent-ruling.ts";
import { effectivePolicies } from "./policies.ts";

const { PERSON, SERVICE_ACCOUNT } = Origin;
const { EXECUTE, QUESTION } = ToolKind;

/** Policies with one rule on the kind execute for each of the origins. */
const policies = (rules: readonly (readonly [Origin, Effect, string?])[] = []) =>
  effectivePolicies("0190c0de-0000-7000-8000-000000000000", {
    policies: create(OrganizationPoliciesSchema, {
      agentPolicy: {
        approvals: {
          rules: rules.map(([origin, effect, decider]) => ({
            origins: [origin],
            kinds: [EXECUTE],
            effect,
            ...(decider !== undefined && { deciders: { userIds: [decider], required: 1 } }),
          })),
        },
      },
    }),
    origins: { agentPolicy: { id: "boss", principal: 1, at: 7_000 } },
  });

test.each([
  [
    [
      [PERSON, Effect.ALLOW],
      [SERVICE_ACCOUNT, Effect.ASK],
    ],
    Effect.ASK,
  ],
  [
    [
      [PERSON, Effect.DENY],
      [SERVICE_ACCOUNT, Effect.ASK],
    ],
    Effect.DENY,
  ],
  [
    [
      [PERSON, Effect.ALLOW],
      [SERVICE_ACCOUNT, Effect.ALLOW],
    ],
    Effect.ALLOW,
  ],
  // Without rules a person's runs ask.
  [[], Effect.ASK],
] as const)("of %j the strictest counts", (rules, effect) => {
  for (const origins of [
    [PERSON, SERVICE_ACCOUNT],
    [SERVICE_ACCOUNT, PERSON],
  ])
    expect(rulingOnDescent(policies(rules), { kind: EXECUTE, tool: "" }, origins).effect).toBe(effect);
});

test("of two that ask, the one counts that names who decides", () => {
  const both = policies([
    [PERSON, Effect.ASK],
    [SERVICE_ACCOUNT, Effect.ASK, "boss"],
  ]);
  const ruling = rulingOnDescent(both, { kind: EXECUTE, tool: "" }, [PERSON, SERVICE_ACCOUNT]);
  expect(ruling.deciders?.userIds).toEqual(["boss"]);
});

test("a question is put to people as soon as a person has a hand in the run", () => {
  const effectOf = (...origins: Origin[]) =>
    rulingOnDescent(policies(), { kind: QUESTION, tool: "" }, origins).effect;
  expect(effectOf(SERVICE_ACCOUNT)).toBe(Effect.DENY);
  expect(effectOf(SERVICE_ACCOUNT, PERSON)).toBe(Effect.ASK);
});

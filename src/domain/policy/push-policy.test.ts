import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { ApprovalDecidersSchema, ApprovalDeciders_Who as Who } from "#gen/service/v1/approval_pb.js";
import { AgentApprovalPolicy_Effect as Effect, PushRulesSchema } from "#gen/service/v1/organization_pb.js";
import { requireSatisfiable } from "./approval-deciders.ts";
import {
  decidersOfPushes,
  pushDeciders,
  requireMeaningfulPushRules,
  requirePushRulesKnown,
} from "./push-policy.ts";

type Rules = NonNullable<MessageInitShape<typeof PushRulesSchema>["rules"]>;
const policy = (...rules: Rules) => create(PushRulesSchema, { rules });

describe("rules that are written", () => {
  test.each(["main", "*", "**", "feature/**", "a*b/*", "v1.*"])("may be about %j", (pattern) => {
    requireMeaningfulPushRules(policy({ branches: [pattern], effect: Effect.DENY }));
  });

  test.each(["a b", "-x", "a..b", "/a", "a/", "a\n", "refs/heads/a", "x.lock", "HEAD", "a\u0007"])(
    "may not be about %j, which no branch matches",
    (pattern) => {
      expect(() =>
        requireMeaningfulPushRules(policy({ branches: ["ok", pattern], effect: Effect.DENY })),
      ).toThrow("agentPolicy.pushRules.rules[0].branches[1] matches no branch");
    },
  );

  test.each([Effect.ALLOW, Effect.DENY])("name nobody who decides with the effect %p", (effect) => {
    const rules = policy({ branches: ["a"], effect }, { branches: ["b"], effect, deciders: {} });
    expect(() => requireMeaningfulPushRules(rules)).toThrow(
      "rules[1].deciders has an effect only with EFFECT_ASK",
    );
  });

  test("are stored only where every server knows them", () => {
    requirePushRulesKnown(true);
    expect(() => requirePushRulesKnown(false)).toThrow("once every server runs this release");
  });
});

describe("who decides a push", () => {
  test("is never the one who asks for it, whatever the rule says", () => {
    expect(pushDeciders(undefined)).toMatchObject({ excludesStarter: true });
    const chosen = create(ApprovalDecidersSchema, { who: Who.ADMINISTRATORS, excludesStarter: false });
    expect(pushDeciders(chosen)).toMatchObject({ who: Who.ADMINISTRATORS, excludesStarter: true });
    expect(chosen.excludesStarter).toBe(false);
  });

  test("must be there: of one administrator nobody is left, of two one is", () => {
    const [named, ...others] = decidersOfPushes(
      policy({ branches: ["a"], effect: Effect.DENY }, { branches: ["b"], effect: Effect.ASK }),
    );
    expect(others).toEqual([]);
    const members = ["a", "b"].map((userId) => ({ userId, isAdministrator: true, groupIds: [] }));
    const check = (count: number) =>
      requireSatisfiable(named?.deciders, members.slice(0, count), named?.field ?? "");
    expect(() => check(1)).toThrow("agentPolicy.pushRules.rules[1].deciders needs 2 of the administrators");
    check(2);
  });
});

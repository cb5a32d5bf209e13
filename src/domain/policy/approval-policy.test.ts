import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { ToolKind } from "#gen/service/v1/approval_pb.js";
import {
  AgentApprovalPolicySchema,
  OrganizationPoliciesSchema,
  type AgentApprovalPolicy_RuleSchema as RuleSchema,
} from "#gen/service/v1/organization_pb.js";
import {
  ApprovalEffect as Effect,
  matchesPattern,
  RunOrigin as Origin,
  requireMeaningfulRules,
  requireNothingAsked,
  rulingOn,
} from "./approval-policy.ts";
import { effectivePolicies } from "./policies.ts";

const { READ, EDIT, DELETE, MOVE, SEARCH, EXECUTE, THINK, FETCH, OTHER, QUESTION, UNSPECIFIED } = ToolKind;

const policies = (...rules: MessageInitShape<typeof RuleSchema>[]) =>
  effectivePolicies("0190c0de-0000-7000-8000-000000000000", {
    policies: create(OrganizationPoliciesSchema, { agentPolicy: { approvals: { rules } } }),
    origins: { agentPolicy: { id: "boss", principal: 1, at: 7_000 } },
  });
const effectOf = (kind: ToolKind, origin: Origin, ...rules: MessageInitShape<typeof RuleSchema>[]) =>
  Effect[rulingOn(policies(...rules), { kind, tool: "shell", origin }).effect];

describe("without a rule", () => {
  test.each([READ, SEARCH, THINK, EDIT])("an agent of a person's tree of runs uses the kind %s", (kind) => {
    expect(effectOf(kind, Origin.PERSON)).toBe("ALLOW");
  });

  test.each([DELETE, MOVE, EXECUTE, FETCH, OTHER, UNSPECIFIED, QUESTION])(
    "it asks for the kind %s",
    (kind) => {
      expect(effectOf(kind, Origin.PERSON)).toBe("ASK");
    },
  );

  test.each([Origin.SERVICE_ACCOUNT, Origin.WORKFLOW_STEP])(
    "nobody is asked in a tree of the origin %s",
    (origin) => {
      for (const kind of [READ, DELETE, EXECUTE, FETCH, OTHER]) expect(effectOf(kind, origin)).toBe("ALLOW");
      const ruling = rulingOn(policies(), { kind: QUESTION, tool: "", origin });
      expect(ruling).toMatchObject({
        effect: Effect.DENY,
        reason: "nobody is asked in a run that no person started",
        fieldPath: "agentPolicy.approvals",
        decision: { fieldPath: "agentPolicy.approvals" },
      });
    },
  );
});

describe("a rule", () => {
  test("that comes first decides, and is named", () => {
    const rules = [
      { kinds: [EXECUTE], tool: "sh*", effect: Effect.DENY, reason: "no shells here" },
      { kinds: [EXECUTE], effect: Effect.ALLOW },
    ];
    expect(
      rulingOn(policies(...rules), { kind: EXECUTE, tool: "shell", origin: Origin.PERSON }),
    ).toMatchObject({
      effect: Effect.DENY,
      reason: "no shells here",
      fieldPath: "agentPolicy.approvals.rules[0]",
      decision: {
        policy: "OrganizationPolicies",
        fieldPath: "agentPolicy.approvals.rules[0]",
        valueInForce: JSON.stringify({
          kinds: ["TOOL_KIND_EXECUTE"],
          tool: "sh*",
          effect: "EFFECT_DENY",
          reason: "no shells here",
        }),
        valueAsked: JSON.stringify({ kind: "EXECUTE", tool: "shell" }),
        setBy: { id: "boss" },
      },
    });
    expect(
      rulingOn(policies(...rules), { kind: EXECUTE, tool: "make", origin: Origin.PERSON }),
    ).toMatchObject({
      effect: Effect.ALLOW,
      fieldPath: "agentPolicy.approvals.rules[1]",
      decision: undefined,
    });
  });

  test("holds for the trees that it names, or for all", () => {
    const asks = { kinds: [EXECUTE], effect: Effect.ASK };
    expect(effectOf(EXECUTE, Origin.SERVICE_ACCOUNT, asks)).toBe("ASK");
    expect(effectOf(EXECUTE, Origin.WORKFLOW_STEP, asks)).toBe("ASK");
    const ofSteps = { ...asks, origins: [Origin.WORKFLOW_STEP] };
    expect(effectOf(EXECUTE, Origin.WORKFLOW_STEP, ofSteps)).toBe("ASK");
    expect(effectOf(EXECUTE, Origin.SERVICE_ACCOUNT, ofSteps)).toBe("ALLOW");
  });

  test("without kinds is about every tool, and no question", () => {
    expect(effectOf(READ, Origin.PERSON, { effect: Effect.DENY })).toBe("DENY");
    expect(effectOf(QUESTION, Origin.PERSON, { effect: Effect.DENY })).toBe("ASK");
    expect(effectOf(QUESTION, Origin.PERSON, { kinds: [QUESTION], effect: Effect.DENY })).toBe("DENY");
  });

  test.each([
    ["effect", { kinds: [QUESTION], effect: Effect.ALLOW }],
    ["deciders", { effect: Effect.DENY, deciders: {} }],
  ])("whose %s could have no effect is refused", (name, rule) => {
    const act = () => requireMeaningfulRules(create(AgentApprovalPolicySchema, { rules: [rule] }));
    expect(act).toThrow(`agentPolicy.approvals.rules[0].${name}`);
  });
});

describe("an agent that cannot ask", () => {
  const all = { effect: Effect.ALLOW };
  const { PERSON, SERVICE_ACCOUNT, WORKFLOW_STEP } = Origin;

  test.each<[string, Origin, MessageInitShape<typeof RuleSchema>[]]>([
    ["by default, where no person started the tree", SERVICE_ACCOUNT, []],
    ["by default, in a step", WORKFLOW_STEP, []],
    ["where everything is allowed", PERSON, [all]],
    ["where every tool is allowed", PERSON, [{ ...all, tool: "*" }, { effect: Effect.DENY }]],
    ["where only questions are denied", SERVICE_ACCOUNT, [{ kinds: [QUESTION], effect: Effect.DENY }]],
    ["where a rule is about other trees", SERVICE_ACCOUNT, [{ effect: Effect.ASK, origins: [PERSON] }]],
    [
      "where kind by kind is allowed",
      PERSON,
      [
        { ...all, kinds: [DELETE, MOVE, EXECUTE] },
        { ...all, kinds: [FETCH, OTHER] },
      ],
    ],
  ])("may be where nothing is asked for: %s", (_, origin, rules) => {
    expect(() => requireNothingAsked(policies(...rules), origin)).not.toThrow();
  });

  test.each<[string, Origin, string, MessageInitShape<typeof RuleSchema>[]]>([
    ["by default", PERSON, "", []],
    ["some tools of a kind", SERVICE_ACCOUNT, ".rules[0]", [{ tool: "deploy*", effect: Effect.ASK }]],
    ["what is denied", WORKFLOW_STEP, ".rules[0]", [{ kinds: [READ], effect: Effect.DENY }]],
    [
      "all but some tools",
      PERSON,
      ".rules[1]",
      [
        { ...all, tool: "make" },
        { kinds: [EXECUTE], effect: Effect.ASK },
        { ...all, kinds: [DELETE, MOVE, FETCH, OTHER] },
      ],
    ],
    ["a kind that no rule is about", PERSON, "", [{ ...all, kinds: [DELETE, MOVE, EXECUTE, FETCH] }]],
  ])("may not be where something is asked for: %s", (_, origin, field, rules) => {
    const decision = { policy: "OrganizationPolicies", fieldPath: `agentPolicy.approvals${field}` };
    const act = () => requireNothingAsked(policies(...rules), origin);
    expect(act).toThrow(expect.objectContaining({ decision: expect.objectContaining(decision) }));
  });
});

test.each([
  ["shell", "shell", true],
  ["shell", "shell2", false],
  ["*", "", true],
  ["*", "anything", true],
  ["mcp__*__read", "mcp__files__read", true],
  ["mcp__*__read", "mcp__read", false],
  ["a*b*c", "aXbYc", true],
  ["a*b*c", "aXcYb", false],
  ["a*a", "a", false],
  ["*x*", "axb", true],
])("the pattern %j and the name %j: %s", (pattern, name, matches) => {
  expect(matchesPattern(pattern, name)).toBe(matches);
});

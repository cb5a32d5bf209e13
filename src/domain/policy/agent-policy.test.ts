import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import {
  AgentMode,
  ExtAgentReasoningEffort as Effort,
  ExtAgentSettingsSchema,
  ExtAgentModel as Model,
  ExtAgentServiceTier as Tier,
} from "#gen/service/v1/agent_pb.js";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import {
  type AgentPolicySchema,
  OrganizationPoliciesSchema,
  ConversationSharingPolicy as Sharing,
  ExtAgentModelPolicyState as State,
} from "#gen/service/v1/organization_pb.js";
import type { Caller, Role } from "../identity/caller.ts";
import {
  mayReadAgentExecution,
  requireAgentAllowed,
  requireAgentSettingsAllowed,
  requireGoalsAllowed,
  requireMcpAllowed,
  requireModeAllowed,
  requireSubagentQuota,
} from "./agent-policy.ts";
import { effectivePolicies } from "./policies.ts";
import type { PolicyDenied } from "./policy-decision.ts";

const policies = (set: MessageInitShape<typeof OrganizationPoliciesSchema>) =>
  effectivePolicies("0190c0de-0000-7000-8000-000000000000", {
    policies: create(OrganizationPoliciesSchema, set),
    origins: {},
  });
const agents = (agentPolicy: MessageInitShape<typeof AgentPolicySchema>) => policies({ agentPolicy });

/** Returns a summary of the decision that denies; undefined when none does. */
function denied(act: () => void) {
  try {
    act();
    return undefined;
  } catch (error) {
    const { fieldPath, valueAsked, allowed } = (error as PolicyDenied).decision;
    return [fieldPath, valueAsked, allowed];
  }
}

const settings = (set: MessageInitShape<typeof ExtAgentSettingsSchema>) =>
  create(ExtAgentSettingsSchema, set);
const FULL = { model: Model.EXT_AGENT_MODEL_1, reasoningEffort: Effort.MAX, serviceTier: Tier.FAST };

describe("the agent of a run or workflow", () => {
  test("is any while no list is set, and one of the list then", () => {
    expect(denied(() => requireAgentAllowed(agents({}), "one"))).toBeUndefined();
    const listed = agents({ allowedAgentIds: ["one", "two"] });
    expect(denied(() => requireAgentAllowed(listed, "two"))).toBeUndefined();
    expect(denied(() => requireAgentAllowed(listed, "three"))).toEqual([
      "agentPolicy.allowedAgentIds",
      '"three"',
      "only the agents one, two",
    ]);
  });

  test("is found in the list however its id is written there", () => {
    const listed = agents({ allowedAgentIds: ["0190C0DE-0000-7000-8000-00000000000A"] });
    expect(denied(() => requireAgentAllowed(listed, "0190c0de-0000-7000-8000-00000000000a"))).toBeUndefined();
    expect(denied(() => requireAgentAllowed(listed, "0190c0de-0000-7000-8000-00000000000b"))).toBeDefined();
  });

  test("may be left to the default whatever the list says", () => {
    expect(denied(() => requireAgentAllowed(agents({ allowedAgentIds: ["one"] }), ""))).toBeUndefined();
  });
});

describe("the settings of an agent", () => {
  const refusal = (policy: MessageInitShape<typeof AgentPolicySchema>, requested: typeof FULL | object) =>
    denied(() => requireAgentSettingsAllowed(agents(policy), settings(requested)));

  test("are any while no policy is set", () => {
    expect(refusal({}, FULL)).toBeUndefined();
  });

  test("name no effort but one of the list", () => {
    const policy = { allowedExtAgentReasoningEfforts: [Effort.LOW, Effort.MEDIUM] };
    expect(refusal(policy, { reasoningEffort: Effort.LOW })).toBeUndefined();
    expect(refusal(policy, { reasoningEffort: Effort.MAX })).toEqual([
      "agentPolicy.allowedExtAgentReasoningEfforts",
      '"EXT_AGENT_REASONING_EFFORT_MAX"',
      "only EXT_AGENT_REASONING_EFFORT_LOW, EXT_AGENT_REASONING_EFFORT_MEDIUM",
    ]);
  });

  test("name no tier but one of the list", () => {
    // Only one of the tiers has a name yet: a list without it allows none.
    const policy = { allowedExtAgentServiceTiers: [Tier.UNSPECIFIED] };
    expect(refusal({ allowedExtAgentServiceTiers: [Tier.FAST] }, { serviceTier: Tier.FAST })).toBeUndefined();
    expect(refusal(policy, { serviceTier: Tier.FAST })).toEqual([
      "agentPolicy.allowedExtAgentServiceTiers",
      '"EXT_AGENT_SERVICE_TIER_FAST"',
      "only EXT_AGENT_SERVICE_TIER_UNSPECIFIED",
    ]);
  });

  test("name no model that is disabled", () => {
    const modelStates = { EXT_AGENT_MODEL_1: State.DISABLED, EXT_AGENT_MODEL_2: State.ALLOWED };
    const policy = { extAgentModelPolicy: { modelStates } };
    expect(refusal(policy, { model: Model.EXT_AGENT_MODEL_2 })).toBeUndefined();
    expect(refusal(policy, { model: Model.EXT_AGENT_MODEL_7 })).toBeUndefined();
    expect(refusal(policy, { model: Model.EXT_AGENT_MODEL_1 })).toEqual([
      "agentPolicy.extAgentModelPolicy",
      '"EXT_AGENT_MODEL_1"',
      "models that are not disabled",
    ]);
  });

  test("that choose nothing are always taken", () => {
    const policy = {
      allowedExtAgentReasoningEfforts: [Effort.LOW],
      allowedExtAgentServiceTiers: [Tier.FAST],
      extAgentModelPolicy: { modelStates: { EXT_AGENT_MODEL_UNSPECIFIED: State.DISABLED } },
    };
    expect(refusal(policy, {})).toBeUndefined();
  });
});

describe("goals", () => {
  const closed = agents({ goalModeDisabled: true });

  test("are given where no policy forbids them", () => {
    expect(denied(() => requireGoalsAllowed(agents({})))).toBeUndefined();
    expect(denied(() => requireModeAllowed(agents({}), AgentMode.GOAL))).toBeUndefined();
  });

  test("are refused with the mode that makes them of inputs, and no other mode with them", () => {
    expect(denied(() => requireGoalsAllowed(closed))?.[0]).toBe("agentPolicy.goalModeDisabled");
    const others = [AgentMode.UNSPECIFIED, AgentMode.EXECUTION, AgentMode.PLANNING, AgentMode.RALPH];
    for (const mode of [...others, AgentMode.SPEC]) {
      expect(denied(() => requireModeAllowed(closed, mode))).toBeUndefined();
    }
    expect(denied(() => requireModeAllowed(closed, AgentMode.GOAL))?.[0]).toBe(
      "agentPolicy.goalModeDisabled",
    );
  });
});

test("the Model Context Protocol is for agents where no policy disables it", () => {
  expect(denied(() => requireMcpAllowed(policies({})))).toBeUndefined();
  expect(denied(() => requireMcpAllowed(agents({ mcpDisabled: false })))).toBeUndefined();
  expect(denied(() => requireMcpAllowed(agents({ mcpDisabled: true })))?.[0]).toBe("agentPolicy.mcpDisabled");
});

describe("sub-agents", () => {
  test.each([
    [0, 5],
    [1, 1],
    [10, 10],
  ])("are as many as the policy %i says", (maxSubagentsPerEnvironment, max) => {
    const set = agents({ maxSubagentsPerEnvironment });
    expect(denied(() => requireSubagentQuota(set, max - 1))).toBeUndefined();
    expect(denied(() => requireSubagentQuota(set, max))?.slice(0, 2)).toEqual([
      "agentPolicy.maxSubagentsPerEnvironment",
      String(max + 1),
    ]);
    expect(denied(() => requireSubagentQuota(set, max + 1))).toBeDefined();
  });
});

describe("the run of another", () => {
  const caller = (role: Role, id = "caller", principal = Principal.USER): Caller => ({
    organizationId: "here",
    subject: create(SubjectSchema, { id, principal }),
    role,
    accountId: "",
    tokenId: "",
    readOnly: false,
  });
  const creator = create(SubjectSchema, { id: "creator", principal: Principal.USER });
  const run = { creator, runnerId: "runner" };
  const shared = agents({ conversationSharingPolicy: Sharing.ORGANIZATION });

  test.each([Sharing.UNSPECIFIED, Sharing.DISABLED])(
    "is read by administrators alone while the policy is %s",
    (conversationSharingPolicy) => {
      const set = agents({ conversationSharingPolicy });
      expect(mayReadAgentExecution(set, caller("administrator"), run)).toBe(true);
      expect(mayReadAgentExecution(set, caller("member"), run)).toBe(false);
      expect(mayReadAgentExecution(set, caller("service_account"), run)).toBe(false);
    },
  );

  test("is read by every member and service account where conversations are shared", () => {
    expect(mayReadAgentExecution(shared, caller("member"), run)).toBe(true);
    expect(mayReadAgentExecution(shared, caller("service_account"), run)).toBe(true);
    expect(mayReadAgentExecution(shared, caller("environment"), run)).toBe(false);
  });

  test("is read by its creator, and by nobody of the same id and another kind", () => {
    expect(mayReadAgentExecution(agents({}), caller("member", "creator"), run)).toBe(true);
    const namesake = caller("service_account", "creator", Principal.SERVICE_ACCOUNT);
    expect(mayReadAgentExecution(agents({}), namesake, run)).toBe(false);
  });

  test("is read by the runner that it is on, and by no other however conversations are shared", () => {
    expect(mayReadAgentExecution(agents({}), caller("runner", "runner", Principal.RUNNER), run)).toBe(true);
    expect(mayReadAgentExecution(shared, caller("runner", "another", Principal.RUNNER), run)).toBe(false);
  });
});

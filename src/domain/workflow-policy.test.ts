import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import {
  ExtAgentReasoningEffort as Effort,
  ExtAgentSettingsSchema,
  ExtAgentModel as Model,
  ExtAgentServiceTier as Tier,
} from "#gen/service/v1/agent_pb.js";
import {
  type AgentPolicySchema,
  OrganizationPoliciesSchema,
  ExtAgentModelPolicyState as State,
} from "#gen/service/v1/organization_pb.js";
import { WorkflowTriggerContextSchema } from "#gen/service/v1/workflow_pb.js";
import { policiesInForce } from "./policies.ts";
import type { PolicyDenied } from "./policy-decision.ts";
import { refuseAgent, refuseAgentSettings, refuseContext } from "./workflow-policy.ts";

const policies = (set: MessageInitShape<typeof OrganizationPoliciesSchema>) =>
  policiesInForce("0190c0de-0000-7000-8000-000000000000", {
    policies: create(OrganizationPoliciesSchema, set),
    origins: {},
  });
const agents = (agentPolicy: MessageInitShape<typeof AgentPolicySchema>) => policies({ agentPolicy });

/** The decision that denies, in short; undefined when nothing does. */
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

describe("the agent of a workflow", () => {
  test("is any while no list is set, and one of the list then", () => {
    expect(denied(() => refuseAgent(agents({}), "one"))).toBeUndefined();
    const listed = agents({ allowedAgentIds: ["one", "two"] });
    expect(denied(() => refuseAgent(listed, "two"))).toBeUndefined();
    expect(denied(() => refuseAgent(listed, "three"))).toEqual([
      "agentPolicy.allowedAgentIds",
      '"three"',
      "only the agents one, two",
    ]);
  });

  test("may be left to the default whatever the list says", () => {
    expect(denied(() => refuseAgent(agents({ allowedAgentIds: ["one"] }), ""))).toBeUndefined();
  });
});

describe("the settings of a workflow's agent", () => {
  const refusal = (policy: MessageInitShape<typeof AgentPolicySchema>, asked: typeof FULL | object) =>
    denied(() => refuseAgentSettings(agents(policy), settings(asked)));

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
    // Of the tiers only one has a name yet: a list without it leaves none.
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

describe("a context without code", () => {
  const agent = create(WorkflowTriggerContextSchema, { context: { case: "agent", value: { prompt: "x" } } });
  const projects = create(WorkflowTriggerContextSchema, { context: { case: "projects", value: {} } });

  test("is for administrators where nothing starts from scratch", () => {
    const set = policies({ disableFromScratch: true });
    for (const role of ["member", "service_account"] as const) {
      expect(denied(() => refuseContext(set, agent, role))?.[0]).toBe("disableFromScratch");
      expect(denied(() => refuseContext(set, projects, role))).toBeUndefined();
      expect(denied(() => refuseContext(policies({}), agent, role))).toBeUndefined();
    }
    expect(denied(() => refuseContext(set, agent, "administrator"))).toBeUndefined();
  });
});

import {
  create,
  type DescMessage,
  getOption,
  hasOption,
  isFieldSet,
  type MessageInitShape,
} from "@bufbuild/protobuf";
import { field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { describe, expect, test } from "@jest/globals";
import { AdmissionLevel } from "#gen/service/v1/environment_pb.js";
import { AgentPolicySchema, OrganizationPoliciesSchema } from "#gen/service/v1/organization_pb.js";
import {
  UpdateOrganizationPoliciesRequest_UpdateAgentPolicySchema,
  UpdateOrganizationPoliciesRequestSchema,
} from "#gen/service/v1/organization_service_pb.js";
import { type ConfiguredPolicies, effectivePolicies, type PolicyOrigin, SAFELIST } from "./policies.ts";
import { updatedPolicies, withoutEnterprise } from "./policy-update.ts";

const ID = "0190c0de-0000-7000-8000-000000000000";
const NOTHING: ConfiguredPolicies = { policies: create(OrganizationPoliciesSchema), origins: {} };
const alice: PolicyOrigin = { id: "alice", principal: 2, at: 1_000 };
const bob: PolicyOrigin = { id: "bob", principal: 2, at: 2_000 };

const update = (
  before: ConfiguredPolicies,
  request: MessageInitShape<typeof UpdateOrganizationPoliciesRequestSchema>,
  origin = alice,
) => updatedPolicies(before, create(UpdateOrganizationPoliciesRequestSchema, request), origin);

const requiredOf = (schema: DescMessage) =>
  schema.fields.filter((field) => hasOption(field, fieldRules) && getOption(field, fieldRules).required);

describe("the policies in force", () => {
  test("have every field that the specification always answers, whether anybody set it or not", () => {
    const { effective } = effectivePolicies(ID, NOTHING);
    expect(requiredOf(OrganizationPoliciesSchema).filter((field) => !isFieldSet(effective, field))).toEqual(
      [],
    );
    const { agentPolicy } = effective;
    expect(agentPolicy).toBeDefined();
    if (!agentPolicy) return;
    expect(requiredOf(AgentPolicySchema).filter((field) => !isFieldSet(agentPolicy, field))).toEqual([]);
  });

  test("leave what was set as it was", () => {
    const set = update(NOTHING, { membersCreateProjects: false, vetoExecPolicy: { executables: ["nc"] } });
    const { effective } = effectivePolicies(ID, set);
    expect(effective).toMatchObject({ organizationId: ID, membersCreateProjects: false });
    expect(effective.vetoExecPolicy?.safelist).toEqual(SAFELIST);
    expect(set.policies.vetoExecPolicy?.safelist).toEqual([]);
  });
});

describe("the safelist", () => {
  test("holds bare names in order, each once, without which no environment works", () => {
    expect(SAFELIST).toEqual([...new Set(SAFELIST)].sort());
    expect(SAFELIST.filter((name) => name.includes("/"))).toEqual([]);
    expect(SAFELIST).toEqual(expect.arrayContaining(["sh", "bash", "init", "runc", "sshd"]));
  });
});

describe("an update", () => {
  test("can set every policy, by the same name", () => {
    const names = ({ fields }: DescMessage) => fields.map(({ name }) => name);
    expect(names(UpdateOrganizationPoliciesRequestSchema)).toEqual([
      ...names(OrganizationPoliciesSchema),
      "update_mask",
    ]);
    expect(names(UpdateOrganizationPoliciesRequest_UpdateAgentPolicySchema)).toEqual(
      names(AgentPolicySchema),
    );
  });

  test("changes neither what it starts from nor what it leaves out", () => {
    const before = update(NOTHING, { allowedEditorIds: ["code"], agentPolicy: { mcpDisabled: true } });
    const after = update(before, { agentPolicy: { goalModeDisabled: true } });
    expect(before.policies.agentPolicy?.goalModeDisabled).toBe(false);
    expect(after.policies).toMatchObject({
      allowedEditorIds: ["code"],
      agentPolicy: { mcpDisabled: true, goalModeDisabled: true },
    });
  });

  test("keeps a message that nobody set absent when its mask names something inside it", () => {
    const after = update(NOTHING, {
      updateMask: { paths: ["security_agent_policy.custom_agents", "agent_policy.command_deny_list"] },
    });
    expect([after.policies.securityAgentPolicy, after.policies.agentPolicy]).toEqual([undefined, undefined]);
  });

  test("sets a message that is merged and comes empty", () => {
    const after = update(NOTHING, { securityAgentPolicy: {} });
    expect(after.policies.securityAgentPolicy).toMatchObject({ customAgents: [] });
  });

  test("takes the deprecated admission level as the one that replaces it", () => {
    const after = update(NOTHING, { maxPortAdmissionLevel: AdmissionLevel.OWNER_ONLY });
    expect(after.policies.maxPortAdmissionLevel).toBe(AdmissionLevel.CREATOR_ONLY);
  });

  test("refuses a default editor that is not allowed", () => {
    expect(() => update(NOTHING, { allowedEditorIds: ["code"], defaultEditorId: "vim" })).toThrow(
      expect.objectContaining({ metadata: { field: "defaultEditorId" } }),
    );
  });
});

describe("the origin of a value", () => {
  test("is who set it last, by the path of what was set", () => {
    const first = update(NOTHING, {
      membersCreateProjects: false,
      agentPolicy: { mcpDisabled: true, commandDenyList: ["rm"] },
      vetoExecPolicy: { enabled: true },
    });
    expect(first.origins).toEqual({
      membersCreateProjects: alice,
      "agentPolicy.mcpDisabled": alice,
      "agentPolicy.commandDenyList": alice,
      vetoExecPolicy: alice,
    });
    const second = update(first, { membersCreateProjects: true, agentPolicy: { mcpDisabled: false } }, bob);
    expect(second.origins).toEqual({
      ...first.origins,
      membersCreateProjects: bob,
      "agentPolicy.mcpDisabled": bob,
    });
  });

  test("stays while the value stays", () => {
    const first = update(NOTHING, { defaultEditorId: "vim", agentPolicy: { commandDenyList: ["rm"] } });
    const again = { defaultEditorId: "vim", agentPolicy: { commandDenyList: ["rm"] } };
    expect(update(first, again, bob).origins).toEqual(first.origins);
  });

  test("goes with the value, also with all of a message", () => {
    const first = update(NOTHING, { defaultEditorId: "vim", agentPolicy: { commandDenyList: ["rm"] } });
    const cleared = update(first, { updateMask: { paths: ["default_editor_id", "agent_policy"] } }, bob);
    expect(cleared.origins).toEqual({});
  });

  test("of what needs the mark of the operator goes with it, and of nothing else", () => {
    const set = update(NOTHING, { archiveEnvironmentsAfter: { seconds: 86_400n }, defaultEditorId: "vim" });
    const { policies, origins } = withoutEnterprise(set);
    expect([policies.archiveEnvironmentsAfter, policies.defaultEditorId]).toEqual([undefined, "vim"]);
    expect(origins).toEqual({ defaultEditorId: alice });
  });
});

import {
  clone,
  create,
  type DescMessage,
  isFieldSet,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import {
  AgentPolicySchema,
  type OrganizationPolicies,
  OrganizationPoliciesSchema,
  VetoExecPolicySchema,
} from "#gen/service/v1/organization_pb.js";
import { SAFELIST } from "./safelist.ts";

/** Who set a policy, and when. */
export interface PolicyOrigin {
  /** Id of the subject. */
  readonly id: string;
  /** Principal by number. */
  readonly principal: number;
  /** Milliseconds since 1970 UTC. */
  readonly at: number;
}

/** By field path in JSON names, such as `agentPolicy.commandDenyList`; a default has none. */
export type PolicyOrigins = Readonly<Record<string, PolicyOrigin>>;

/** What an organization has set; the rest takes its default. */
export interface SetPolicies {
  readonly policies: OrganizationPolicies;
  readonly origins: PolicyOrigins;
}

/** What holds in an organization. */
export interface Policies {
  /** With the defaults of what nobody set. */
  readonly inForce: OrganizationPolicies;
  readonly origins: PolicyOrigins;
}

/** What holds while nobody has set anything: the one place of the defaults. */
const DEFAULTS: MessageInitShape<typeof OrganizationPoliciesSchema> = {
  membersRequireProjects: false,
  membersCreateProjects: true,
  defaultEditorId: "",
  allowLocalRunners: true,
  maximumRunningEnvironmentsPerUser: 0n,
  maximumEnvironmentsPerUser: 0n,
  defaultEnvironmentImage: "",
  portSharingDisabled: false,
  requireCustomDomainAccess: false,
  restrictAccountCreationToScim: false,
  webBrowserDisabled: false,
  disableFromScratch: false,
};

/** The same for what agents may do. */
const AGENT_DEFAULTS: MessageInitShape<typeof AgentPolicySchema> = {
  mcpDisabled: false,
  scmToolsDisabled: false,
};

/** The policies of an organization as they are answered and enforced. */
export function policiesInForce(organizationId: string, { policies, origins }: SetPolicies): Policies {
  const inForce = create(OrganizationPoliciesSchema, DEFAULTS);
  const agentPolicy = create(AgentPolicySchema, AGENT_DEFAULTS);
  overlay(OrganizationPoliciesSchema, inForce, policies);
  if (policies.agentPolicy) overlay(AgentPolicySchema, agentPolicy, policies.agentPolicy);
  inForce.agentPolicy = agentPolicy;
  inForce.organizationId = organizationId;
  if (inForce.vetoExecPolicy) {
    inForce.vetoExecPolicy = clone(VetoExecPolicySchema, inForce.vetoExecPolicy);
    inForce.vetoExecPolicy.safelist = [...SAFELIST];
  }
  return { inForce, origins };
}

/** Puts what is set in one message over what is in another. */
function overlay<D extends DescMessage>(schema: D, under: MessageShape<D>, over: MessageShape<D>): void {
  const [target, source] = [under as Record<string, unknown>, over as Record<string, unknown>];
  for (const field of schema.fields) {
    if (isFieldSet(over, field)) target[field.localName] = source[field.localName];
  }
}

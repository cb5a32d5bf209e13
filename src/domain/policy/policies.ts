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

/** The subject that set a policy, and the time. */
export interface PolicyOrigin {
  /** Id of the subject. */
  readonly id: string;
  /** Principal by number. */
  readonly principal: number;
  /** Milliseconds since 1970 UTC. */
  readonly at: number;
}

/**
 * Origins by field path in JSON names, such as `agentPolicy.commandDenyList`; a default has none.
 */
export type PolicyOrigins = Readonly<Record<string, PolicyOrigin>>;

/** The policies that an organization has set; all others have their defaults. */
export interface ConfiguredPolicies {
  readonly policies: OrganizationPolicies;
  readonly origins: PolicyOrigins;
}

/** The policies that apply in an organization. */
export interface Policies {
  /** All policies, with defaults for those that nobody set. */
  readonly effective: OrganizationPolicies;
  readonly origins: PolicyOrigins;
}

/** The default policies; no other place defines them. */
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

/** The default policies for agents. */
const AGENT_DEFAULTS: MessageInitShape<typeof AgentPolicySchema> = {
  mcpDisabled: false,
  scmToolsDisabled: false,
};

/** Returns the policies of an organization as they are returned and enforced. */
export function effectivePolicies(
  organizationId: string,
  { policies, origins }: ConfiguredPolicies,
): Policies {
  const effective = create(OrganizationPoliciesSchema, DEFAULTS);
  const agentPolicy = create(AgentPolicySchema, AGENT_DEFAULTS);
  overlay(OrganizationPoliciesSchema, effective, policies);
  if (policies.agentPolicy) overlay(AgentPolicySchema, agentPolicy, policies.agentPolicy);
  effective.agentPolicy = agentPolicy;
  effective.organizationId = organizationId;
  if (effective.vetoExecPolicy) {
    effective.vetoExecPolicy = clone(VetoExecPolicySchema, effective.vetoExecPolicy);
    effective.vetoExecPolicy.safelist = [...SAFELIST];
  }
  return { effective, origins };
}

/** Copies the fields that are set in one message over those of another. */
function overlay<D extends DescMessage>(schema: D, under: MessageShape<D>, over: MessageShape<D>): void {
  const [target, source] = [under as Record<string, unknown>, over as Record<string, unknown>];
  for (const field of schema.fields) {
    if (isFieldSet(over, field)) target[field.localName] = source[field.localName];
  }
}

/**
 * Names of executables that no deny list can block: without the shells, the first process, the
 * container runtime and the login, an environment could neither start nor be entered to correct the
 * policy.
 */
export const SAFELIST: readonly string[] = [
  "agetty",
  "ash",
  "bash",
  "busybox",
  "conmon",
  "containerd",
  "containerd-shim-runc-v2",
  "crun",
  "dash",
  "docker-init",
  "dockerd",
  "dumb-init",
  "env",
  "init",
  "ld-linux-aarch64.so.1",
  "ld-linux-x86-64.so.2",
  "login",
  "mount",
  "runc",
  "sh",
  "sshd",
  "systemd",
  "systemd-executor",
  "tini",
  "umount",
];

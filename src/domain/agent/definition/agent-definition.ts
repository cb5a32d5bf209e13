import { create } from "@bufbuild/protobuf";
import { AgentForm } from "#gen/runner/v1/work_pb.js";
import { type Agent, type AgentDefinition, AgentKind, AgentSchema } from "#gen/service/v1/agent_pb.js";
import type { UpdateAgentRequest } from "#gen/service/v1/agent_service_pb.js";
import { type DomainError, phaseUnsuitable, valueTaken, valueUnusable } from "../../error.ts";
import { isReservedName } from "../../policy/secret.ts";
import { newAgent } from "../agent.ts";

/** The maximum number of an organization's own agents (contract, AgentService.CreateAgent). */
const MAX_OWN_AGENTS = 100;

/** Names of variables that end in a word which usually indicates a secret. */
const SECRET_NAME = /(^|_)(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)$/i;

const FORMS: Readonly<Record<AgentKind, AgentForm>> = {
  [AgentKind.UNSPECIFIED]: AgentForm.UNSPECIFIED,
  [AgentKind.TEXT]: AgentForm.TEXT,
  [AgentKind.ACP]: AgentForm.ACP,
  [AgentKind.JSON_LINES]: AgentForm.JSON_LINES,
};

/** The program of an agent, in the form that runners receive. */
export interface AgentProgram {
  readonly form: AgentForm;
  /** Program and arguments. */
  readonly command: readonly string[];
}

/**
 * Returns the program of an agent that administrators define.
 * @throws DomainError VALUE_UNUSABLE for a variable that the runner sets itself, or that names a secret
 */
export function programOf({ kind, command, arguments: words, variables }: AgentDefinition): AgentProgram {
  for (const name of Object.keys(variables)) {
    const field = `definition.variables[${name}]`;
    if (isReservedName(name)) throw valueUnusable(field, "the runner sets a variable with this name itself");
    if (SECRET_NAME.test(name))
      throw valueUnusable(
        field,
        "the name is that of a secret, which everybody could read here: make a secret that is mounted as this environment variable",
      );
  }
  return { form: FORMS[kind], command: [command, ...words] };
}

/**
 * Returns an agent after a change; fields that the request leaves out keep their values.
 * @throws DomainError VALUE_UNUSABLE, as newAgent does
 */
export function redefinedAgent(before: Agent, change: UpdateAgentRequest): Agent {
  const {
    name = before.name,
    description = before.description,
    takesSettings = before.takesSettings,
    definition,
  } = change;
  const described = newAgent({ id: before.id, name, description, takesSettings });
  const { default: isDefault, own } = before;
  const program = definition ?? before.definition;
  return create(AgentSchema, {
    ...described,
    default: isDefault,
    own,
    ...(program && { definition: program }),
  });
}

/** The fields that identify an agent among those that an organization sees. */
export type VisibleAgent = Pick<Agent, "id" | "name" | "own">;

/** Requires that an agent was defined through the API. @throws DomainError PHASE_UNSUITABLE */
export function requireDefined({ definition }: Agent): void {
  if (definition) return;
  throw phaseUnsuitable(
    "agent",
    "REGISTERED",
    "the operator registered this agent: only the operator changes it, on the server's machine",
  );
}

/**
 * Requires that an organization sees no other agent with a name.
 * @param visible the agents that it sees
 * @throws DomainError VALUE_TAKEN
 */
export function requireNameFree(name: string, id: string, visible: readonly VisibleAgent[]): void {
  if (visible.every((agent) => agent.name !== name || agent.id === id)) return;
  throw valueTaken("agent", "name", "the organization sees an agent of this name: choose another");
}

/** Requires room for one more agent of an organization. @throws DomainError PHASE_UNSUITABLE */
export function requireRoomForAgent(visible: readonly VisibleAgent[]): void {
  if (visible.filter(({ own }) => own).length < MAX_OWN_AGENTS) return;
  throw phaseUnsuitable(
    "organization",
    "FULL",
    `an organization has ${MAX_OWN_AGENTS} agents of its own at most: delete one`,
  );
}

/** Returns the error for an agent that is defined through the API when no runner may run it. */
export function apiAgentsOff(): DomainError {
  return phaseUnsuitable(
    "runner",
    "API_AGENTS_OFF",
    "no runner of the organization allows agents that are defined by the API: its operator starts one with --allow-api-agents",
  );
}

/** Returns the error for an agent that is defined through the API on a runner that may not run it. */
export function apiAgentRefused(): DomainError {
  return phaseUnsuitable(
    "runner",
    "API_AGENTS_OFF",
    "the agent is defined by the API, and the operator of this runner does not allow that: use another runner or environment, or start the runner with --allow-api-agents",
  );
}

/** Requires that every server knows agents that are defined through the API. @throws DomainError PHASE_UNSUITABLE */
export function requireApiAgentsKnown(areKnown: boolean): void {
  if (areKnown) return;
  throw phaseUnsuitable(
    "installation",
    "UPGRADING",
    "agents can be defined once every server runs this release",
  );
}

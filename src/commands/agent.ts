import { AgentForm } from "#gen/runner/v1/work_pb.js";
import type { DataConfig } from "../config/config.ts";
import type { AgentOwner } from "../domain/agent/agent.ts";
import { makeAgentDefault, registerAgent, unregisterAgent } from "../services/agent/agent-registry.ts";
import { findAgents } from "../store/agent/agent.ts";
import type { Store } from "../store/store.ts";
import type { Listing } from "./definitions/command-line.ts";
import type { FormName } from "./definitions/declare-agent.ts";
import { openExistingData, rethrowDomainError } from "./open-data.ts";
import { resolveOrganization } from "./organization.ts";

const FORMS: Readonly<Record<FormName, AgentForm>> = {
  "json-lines": AgentForm.JSON_LINES,
  text: AgentForm.TEXT,
  acp: AgentForm.ACP,
};

const FORM_NAMES = new Map(Object.entries(FORMS).map(([name, form]) => [form, name]));

export interface AgentOptions {
  readonly name: string;
  readonly command: string;
  readonly form: FormName;
  readonly description: string;
  readonly takesSettings: boolean;
  readonly isDefault: boolean;
  /** Servers of the Model Context Protocol. */
  readonly mcpServers: readonly string[];
  /** The id or name of the organization; undefined for an agent of all organizations. */
  readonly organization: string | undefined;
}

/** The name of an agent and its organization. */
export type AgentName = Pick<AgentOptions, "name" | "organization">;

/**
 * Registers an agent as the operator. Works while a server runs.
 *
 * @returns a line with its id for the person at the terminal
 * @throws StartError
 */
export function addAgent(config: DataConfig, { form, ...options }: AgentOptions): Promise<string> {
  return withOwner(config, options, async (store, organizationId) => {
    const id = await registerAgent(store, { ...options, form: FORMS[form], organizationId });
    return `agent ${id}\n`;
  });
}

/**
 * Makes an agent the default for requests that name no agent.
 * @throws StartError
 */
export function makeDefault(config: DataConfig, options: AgentName): Promise<string> {
  return withOwner(config, options, async (store, organizationId) => {
    await makeAgentDefault(store, organizationId, options.name);
    return `${options.name} is the default agent\n`;
  });
}

/**
 * Removes a registered agent.
 * @throws StartError
 */
export function removeAgent(config: DataConfig, options: AgentName): Promise<string> {
  return withOwner(config, options, async (store, organizationId) => {
    await unregisterAgent(store, organizationId, options.name);
    return `${options.name} is no longer registered\n`;
  });
}

/** Lists the agents: id, name, owner, form, command, and a mark for a default. */
export async function listAgents(config: DataConfig): Promise<Listing> {
  const { store } = await openExistingData(config);
  try {
    const all = await findAgents(store.reader);
    const rows = all.map(({ agent, organizationId, form, command }) => {
      const formName = FORM_NAMES.get(form) ?? "unknown";
      const words = JSON.stringify(command);
      const mark = agent.default ? ["default"] : [];
      return [agent.id, agent.name, organizationId ?? "all", formName, words, ...mark];
    });
    return { headings: ["AGENT", "NAME", "ORGANIZATION", "FORM", "COMMAND", "DEFAULT"], rows };
  } finally {
    await store.close();
  }
}

async function withOwner(
  config: DataConfig,
  { organization }: Pick<AgentOptions, "organization">,
  act: (store: Store, owner: AgentOwner) => Promise<string>,
): Promise<string> {
  const { store } = await openExistingData(config);
  try {
    const owner = organization === undefined ? null : (await resolveOrganization(store, organization)).id;
    return await act(store, owner).catch(rethrowDomainError);
  } finally {
    await store.close();
  }
}

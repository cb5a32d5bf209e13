import type {
  ClientContext,
  SessionConfigOption,
  SessionModeState,
  SetSessionConfigOptionResponse,
} from "@agentclientprotocol/sdk";
import { AgentMode } from "#gen/service/v1/agent_pb.js";
import type { InputSettings } from "../agent-input-encoding.ts";
import type { AcpSession } from "./acp-session.ts";

/** The names that agents use for the modes of the contract; the first one that an agent has is used. */
const MODE_NAMES: Readonly<Record<string, readonly string[]>> = {
  execution: ["execution", "default", "code", "build", "agent"],
  planning: ["planning", "plan", "architect"],
  ralph: ["ralph", "auto", "autonomous"],
  spec: ["spec"],
  goal: ["goal"],
};

/** The names that agents use for the efforts of the contract. */
const EFFORT_NAMES: Readonly<Record<string, readonly string[]>> = {
  low: ["low"],
  medium: ["medium"],
  high: ["high"],
  extra_high: ["extra_high", "xhigh"],
  max: ["max"],
  ultra: ["ultra"],
};

interface Choice {
  readonly value: string;
  readonly name: string;
}

/** Sets the modes and options of an agent's session. */
export class AcpChoices {
  readonly #agent: ClientContext;
  readonly #sessionId: string;
  #modes: SessionModeState | undefined;
  #options: readonly SessionConfigOption[];

  constructor(agent: ClientContext, { id, modes, configOptions }: AcpSession) {
    this.#agent = agent;
    this.#sessionId = id;
    this.#modes = modes;
    this.#options = configOptions;
  }

  /** Records the options that the agent reports. */
  setOptions(options: readonly SessionConfigOption[]): void {
    this.#options = options;
  }

  /** Records the mode that the agent reports; returns the contract's mode, unspecified when there is none. */
  setMode(modeId: string): AgentMode {
    if (this.#modes) this.#modes = { ...this.#modes, currentModeId: modeId };
    const mode = this.#modes?.availableModes.find(({ id }) => id === modeId);
    const [name] =
      Object.entries(MODE_NAMES).find(([, names]) =>
        [modeId, mode?.name].some((each) => each !== undefined && names.includes(plain(each))),
      ) ?? [];
    return AgentMode[(name ?? "").toUpperCase() as keyof typeof AgentMode] ?? AgentMode.UNSPECIFIED;
  }

  /**
   * Switches the agent to a mode of the contract.
   * @returns why the agent does not have the mode, for people; undefined when it has
   */
  async chooseMode(mode: string): Promise<string | undefined> {
    const names = MODE_NAMES[mode] ?? [];
    const option = this.#find("mode");
    const choices = option
      ? choicesOf(option)
      : (this.#modes?.availableModes.map(({ id, name }) => ({ value: id, name })) ?? []);
    const choice = byName(choices, names);
    // Without a choice the agent's own behavior is the default.
    if (!choice && mode === "execution") return undefined;
    if (!choice) {
      const others = choices.map(({ value }) => value).join(", ");
      return `the agent has no mode ${mode}${others === "" ? "" : `: it has ${others}`}`;
    }
    if (option) {
      await this.#set(option, choice.value);
    } else if (this.#modes?.currentModeId !== choice.value) {
      await this.#agent.request("session/set_mode", { sessionId: this.#sessionId, modeId: choice.value });
      if (this.#modes) this.#modes = { ...this.#modes, currentModeId: choice.value };
    }
    return undefined;
  }

  /** Applies the settings that the agent supports. */
  async chooseSettings({ model, reasoningEffort, serviceTier }: InputSettings): Promise<void> {
    if (model !== undefined) {
      const option = this.#find("model");
      const choice = option && choicesOf(option)[model - 1];
      if (option && choice) await this.#set(option, choice.value);
    }
    if (reasoningEffort !== undefined) {
      const option = this.#find("thought_level");
      const choice = option && byName(choicesOf(option), EFFORT_NAMES[reasoningEffort] ?? []);
      if (option && choice) await this.#set(option, choice.value);
    }
    if (serviceTier !== undefined) {
      const option = this.#options.find(
        ({ id }) => plain(id) === serviceTier || plain(id) === "service_tier",
      );
      if (option?.type === "boolean") await this.#set(option, true);
      const choice = option && byName(choicesOf(option), [serviceTier]);
      if (option && choice) await this.#set(option, choice.value);
    }
  }

  #find(category: string): SessionConfigOption | undefined {
    return this.#options.find((option) => option.category === category);
  }

  async #set(option: SessionConfigOption, value: string | boolean): Promise<void> {
    if (option.currentValue === value) return;
    const named = { sessionId: this.#sessionId, configId: option.id };
    const request =
      typeof value === "boolean" ? { ...named, type: "boolean" as const, value } : { ...named, value };
    const { configOptions } = await this.#agent.request<SetSessionConfigOptionResponse>(
      "session/set_config_option",
      request,
    );
    this.#options = configOptions;
  }
}

function choicesOf(option: SessionConfigOption): readonly Choice[] {
  if (option.type !== "select") return [];
  return option.options.flatMap((each): readonly Choice[] => ("group" in each ? each.options : [each]));
}

function byName(choices: readonly Choice[], names: readonly string[]): Choice | undefined {
  for (const name of names) {
    const found = choices.find((each) => plain(each.value) === name || plain(each.name) === name);
    if (found) return found;
  }
  return undefined;
}

/** Normalizes a name for comparison. */
function plain(name: string): string {
  return name
    .trim()
    .toLowerCase()
    .replaceAll(/[\s-]+/g, "_");
}

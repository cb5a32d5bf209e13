import { type Command, Option } from "commander";
import type { AgentOptions } from "../agent.ts";
import { AGENT_PRESETS, listPresets } from "../agent-presets.ts";
import { accessOf, CLIENT_SETTINGS, type ClientFlags } from "../client/server-access.ts";
import { ExitCode } from "../start-error.ts";
import {
  type Flags,
  listOnData,
  printListing,
  retryOption,
  runOnData,
  type Terminal,
  withDataSettings,
  withSettings,
} from "./command-line.ts";

// Loaded on demand: a command does not load the modules of others.
const loadAgentCommands = () => import("../agent.ts");

/** The forms of an agent's program, by their names on the command line. */
const FORM_NAMES = ["acp", "json-lines", "text"] as const;
export type FormName = (typeof FORM_NAMES)[number];

/** The flags of `agent add` whose names differ from the options. */
type AddFlags = Flags &
  Omit<AgentOptions, "name" | "command" | "isDefault" | "takesSettings" | "mcpServers"> & {
    readonly command?: string;
    readonly mcpServer: readonly string[];
    readonly preset?: string;
    readonly default?: boolean;
    readonly takesSettings?: boolean;
  };

type OwnerFlags = Flags & Pick<AgentOptions, "organization">;

/** Declares `chartroom agent ...`. */
export function declareAgent(program: Command, terminal: Terminal): void {
  const agent = program
    .command("agent")
    .description("agents: programs that runners start for agent executions");
  withDataSettings(
    ofOrganization(
      agent
        .command("add")
        .description("register an agent and print its id")
        .argument("<name>", "its name, at most 80 characters")
        .option(
          "--command <words>",
          'its program and arguments, run without a shell: a JSON list such as ["agent", "--loop"], or plain words with spaces between',
        )
        .addOption(
          new Option(
            "--form <form>",
            "the program's protocol: the Agent Client Protocol (docs/agents/acp.md), JSON lines (docs/agents.md), or plain text once per turn",
          )
            .choices([...FORM_NAMES])
            .default("text"),
        )
        .addOption(
          new Option("--preset <name>", "the command and form of a known program: chartroom agent presets")
            .choices(AGENT_PRESETS.map((preset) => preset.name))
            .conflicts(["command", "form"]),
        )
        .option(
          "--mcp-server <server>",
          "a server of the Model Context Protocol that it may use, of the form acp: NAME=COMMAND, NAME=URL or a JSON object (docs/agents/acp.md); may be repeated",
          (server: string, earlier: readonly string[]) => [...earlier, server],
          [],
        )
        .option("--description <text>", "a description for people", "")
        .option("--takes-settings", "pass it the model, effort and tier of requests")
        .option("--default", "make it the default for requests that name no agent"),
    ).action((name: string, { preset, description, organization, ...flags }: AddFlags, add: Command) => {
      const { default: isDefault = false, takesSettings = false, mcpServer: mcpServers, ...rest } = flags;
      const known = AGENT_PRESETS.find((each) => each.name === preset);
      const { command, form, ...settings } = {
        ...rest,
        ...(known && { command: known.command, form: known.form }),
      };
      if (command === undefined) add.error("error: give the option --command or --preset");
      const texts = { name, command, form, description, organization };
      const options = { ...texts, takesSettings, isDefault, mcpServers };
      return runOnData(terminal, settings, async (config) =>
        (await loadAgentCommands()).addAgent(config, options),
      );
    }),
  );
  agent
    .command("presets")
    .description("list known programs: name, command, what to install, and the variable with the key")
    .action(() => printListing(terminal, listPresets()));
  withDataSettings(
    agent
      .command("list")
      .description("list the agents with their ids, owners, forms and commands")
      .action((flags: Flags) =>
        listOnData(terminal, flags, async (config) => (await loadAgentCommands()).listAgents(config)),
      ),
  );
  withDataSettings(
    ofOrganization(
      agent
        .command("remove")
        .description("unregister an agent: its agent executions that have begun continue, others fail")
        .argument("<agent>", "its name or id"),
    ).action((name: string, { organization, ...flags }: OwnerFlags) =>
      runOnData(terminal, flags, async (config) =>
        (await loadAgentCommands()).removeAgent(config, { name, organization }),
      ),
    ),
  );
  withDataSettings(
    ofOrganization(
      agent
        .command("default")
        .description("make an agent the default for requests that name none")
        .argument("<agent>", "its name or id"),
    ).action((name: string, { organization, ...flags }: OwnerFlags) =>
      runOnData(terminal, flags, async (config) =>
        (await loadAgentCommands()).makeDefault(config, { name, organization }),
      ),
    ),
  );
  declareAgentChat(agent, terminal);
}

function ofOrganization(command: Command): Command {
  return command.option("--organization <id or name>", "whose agent; without it, that of all organizations");
}

type ChatFlags = ClientFlags & { readonly retryFor: number };

/** Declares `chartroom agent chat`, below the command `agent`. */
function declareAgentChat(agent: Command, terminal: Terminal): void {
  withSettings(
    agent
      .command("chat")
      .description("chat with an agent run: show its output and send what is typed")
      .argument("<run>", "its id")
      .addOption(retryOption())
      .action(async (agentExecutionId: string, flags: ChatFlags) => {
        const { input, output } = terminal;
        const access = accessOf(flags, terminal);
        // Loaded on demand: a command does not load the modules of others.
        const { chat } = await import("../chat/chat.ts");
        const retryForMs = flags.retryFor * 1_000;
        const isDumb = terminal.env.TERM === "dumb";
        const isWell = await chat({ ...access, agentExecutionId, retryForMs, input, output, isDumb });
        terminal.setExitCode(isWell ? 0 : ExitCode.runFailed);
      }),
    CLIENT_SETTINGS,
  );
}

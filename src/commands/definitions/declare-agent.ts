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
    .description("manage agents: programs that runners start for agent runs");
  withDataSettings(
    ofOrganization(
      agent
        .command("add")
        .description("register an agent and print its id")
        .argument("<name>", "name of the agent, at most 80 characters")
        .option(
          "--command <words>",
          'program and arguments, run without a shell: a JSON list such as ["agent", "--loop"], or words separated by spaces',
        )
        .addOption(
          new Option(
            "--form <form>",
            "protocol of the program: Agent Client Protocol (docs/agents/acp.md), JSON lines (docs/agents.md), or plain text, started once per turn",
          )
            .choices([...FORM_NAMES])
            .default("text"),
        )
        .addOption(
          new Option(
            "--preset <name>",
            "use the command and form of a known program; see `chartroom agent presets`",
          )
            .choices(AGENT_PRESETS.map((preset) => preset.name))
            .conflicts(["command", "form"]),
        )
        .option(
          "--mcp-server <server>",
          "MCP server for an agent of the form acp: NAME=COMMAND, NAME=URL or a JSON object (docs/agents/acp.md); can be repeated",
          (server: string, earlier: readonly string[]) => [...earlier, server],
          [],
        )
        .option("--description <text>", "description of the agent", "")
        .option("--takes-settings", "pass the model, effort and tier of each request to the agent")
        .option("--default", "make it the default agent"),
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
    .description("list known programs: name, command, what to install, and the secret to set")
    .action(() => printListing(terminal, listPresets()));
  withDataSettings(
    agent
      .command("list")
      .description("list agents with their ids, owners, forms and commands")
      .action((flags: Flags) =>
        listOnData(terminal, flags, async (config) => (await loadAgentCommands()).listAgents(config)),
      ),
  );
  withDataSettings(
    ofOrganization(
      agent
        .command("remove")
        .description("unregister an agent; its started runs continue, its pending runs fail")
        .argument("<agent>", "name or id of the agent"),
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
        .description("make an agent the default for requests that name no agent")
        .argument("<agent>", "name or id of the agent"),
    ).action((name: string, { organization, ...flags }: OwnerFlags) =>
      runOnData(terminal, flags, async (config) =>
        (await loadAgentCommands()).makeDefault(config, { name, organization }),
      ),
    ),
  );
  declareAgentChat(agent, terminal);
}

function ofOrganization(command: Command): Command {
  return command.option(
    "--organization <id or name>",
    "organization that owns the agent; by default, the agent is shared by all organizations",
  );
}

type ChatFlags = ClientFlags & { readonly retryFor: number };

/** Declares `chartroom agent chat`, below the command `agent`. */
function declareAgentChat(agent: Command, terminal: Terminal): void {
  withSettings(
    agent
      .command("chat")
      .description("chat with an agent run: show its output and send what you type")
      .argument("<run>", "id of the run")
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

import { type Command, Option } from "commander";
import { RUNNER_SETTINGS, TOKEN_VARIABLE } from "../../config/config.ts";
import { integer } from "../../config/setting-values.ts";
import { type FlagsOf, readSettings, setting } from "../../config/settings.ts";
import type { AgentOptions } from "../agent.ts";
import { StartError } from "../start-error.ts";
import { type Flags, runOnData, type Terminal, withDataSettings, withSettings } from "./command-line.ts";

// Loaded on demand: a command does not load the modules of others.
const work = () => import("../agent.ts");

/** The forms of an agent's program, by their names on the command line. */
const FORM_NAMES = ["json-lines", "text"] as const;
export type FormName = (typeof FORM_NAMES)[number];

/** The flags of `agent add`, where their names differ from the options. */
type AddFlags = Flags &
  Omit<AgentOptions, "name" | "isDefault" | "takesSettings"> & {
    readonly default?: boolean;
    readonly takesSettings?: boolean;
  };

type OwnerFlags = Flags & Pick<AgentOptions, "organization">;

/** Declares `chartroom agent ...`. */
export function declareAgent(program: Command, terminal: Terminal): void {
  const agent = program
    .command("agent")
    .description("the agents that runs are of: programs that runners start");
  withDataSettings(
    ofOrganization(
      agent
        .command("add")
        .description("register an agent and print its id")
        .argument("<name>", "what people call it, at most 80 characters")
        .requiredOption(
          "--command <words>",
          'its program and arguments, run without a shell: a JSON list such as ["agent", "--loop"], or plain words with spaces between',
        )
        .addOption(
          new Option(
            "--form <form>",
            "how the program speaks: JSON lines (docs/agents.md), or plain text a turn",
          )
            .choices([...FORM_NAMES])
            .default("text"),
        )
        .option("--description <text>", "what it is, for people", "")
        .option("--takes-settings", "hand it the model, effort and tier that requests ask for")
        .option("--default", "use it where a request names no agent"),
    ).action((name: string, { command, form, description, organization, ...flags }: AddFlags) => {
      const { default: isDefault = false, takesSettings = false, ...settings } = flags;
      const options = { name, command, form, description, takesSettings, isDefault, organization };
      return runOnData(terminal, settings, async (config) => (await work()).addAgent(config, options));
    }),
  );
  withDataSettings(
    agent
      .command("list")
      .description("list the agents with their ids, owners, forms and commands")
      .action((flags: Flags) =>
        runOnData(terminal, flags, async (config) => (await work()).listAgents(config)),
      ),
  );
  withDataSettings(
    ofOrganization(
      agent
        .command("remove")
        .description("take an agent off the register: its runs that have begun go on, others fail")
        .argument("<agent>", "its name or id"),
    ).action((name: string, { organization, ...flags }: OwnerFlags) =>
      runOnData(terminal, flags, async (config) =>
        (await work()).removeAgent(config, { name, organization }),
      ),
    ),
  );
  withDataSettings(
    ofOrganization(
      agent
        .command("default")
        .description("use an agent where a request names none")
        .argument("<agent>", "its name or id"),
    ).action((name: string, { organization, ...flags }: OwnerFlags) =>
      runOnData(terminal, flags, async (config) =>
        (await work()).makeDefault(config, { name, organization }),
      ),
    ),
  );
  declareAgentChat(agent, terminal);
}

function ofOrganization(command: Command): Command {
  return command.option("--organization <id or name>", "whose agent; without it, that of all organizations");
}

const CHAT_SETTINGS = {
  server: setting({ ...RUNNER_SETTINGS.server, help: "URL of the server that has the run" }),
} as const;

type ChatFlags = FlagsOf<typeof CHAT_SETTINGS> & { readonly retryFor: number };

const readSeconds = integer(0, 86_400);

function retrySeconds(text: string): number {
  try {
    return readSeconds(text);
  } catch (error) {
    throw new StartError(`--retry-for ${(error as Error).message}`);
  }
}

/** Declares `chartroom agent chat`, below the command `agent`. */
function declareAgentChat(agent: Command, terminal: Terminal): void {
  withSettings(
    agent
      .command("chat")
      .description(`talk with an agent's run, as the owner of the access token in ${TOKEN_VARIABLE}`)
      .argument("<run>", "its id")
      .option(
        "--retry-for <seconds>",
        "how long to go on trying when the server cannot be reached",
        retrySeconds,
        300,
      )
      .action(async (agentExecutionId: string, flags: ChatFlags) => {
        const { env, input, output } = terminal;
        const { server } = readSettings(CHAT_SETTINGS, flags, env);
        const token = env[TOKEN_VARIABLE]?.trim();
        if (!token)
          throw new StartError(`put an access token into ${TOKEN_VARIABLE}: chartroom token create`);
        // Loaded on demand: a command does not load the modules of others.
        const { chat } = await import("../chat/chat.ts");
        const retryForMs = flags.retryFor * 1_000;
        const isWell = await chat({ server, token, agentExecutionId, retryForMs, input, output });
        terminal.setExitCode(isWell ? 0 : 1);
      }),
    CHAT_SETTINGS,
  );
}

import type { Command } from "commander";
import { RUNNER_SETTINGS, TOKEN_VARIABLE } from "../../config/config.ts";
import { integer } from "../../config/setting-values.ts";
import { type FlagsOf, readSettings, setting } from "../../config/settings.ts";
import { StartError } from "../start-error.ts";
import { type Terminal, withSettings } from "./command-line.ts";

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
export function declareAgentChat(agent: Command, terminal: Terminal): void {
  withSettings(
    agent
      .command("chat")
      .description(`talk with an agent's run, as whoever's access token is in ${TOKEN_VARIABLE}`)
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

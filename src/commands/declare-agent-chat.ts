import type { Command } from "commander";
import { RUNNER_SETTINGS, TOKEN_VARIABLE } from "../config.ts";
import { type FlagsOf, readSettings, setting } from "../settings.ts";
import { type Terminal, withSettings } from "./command-line.ts";
import { StartError } from "./start-error.ts";

const CHAT_SETTINGS = {
  server: setting({ ...RUNNER_SETTINGS.server, help: "URL of the server that has the run" }),
} as const;

/** `chartroom agent chat`, below the command `agent`. */
export function declareAgentChat(agent: Command, terminal: Terminal): void {
  withSettings(
    agent
      .command("chat")
      .description(`talk with an agent's run, as whoever's access token is in ${TOKEN_VARIABLE}`)
      .argument("<run>", "its id")
      .action(async (agentExecutionId: string, flags: FlagsOf<typeof CHAT_SETTINGS>) => {
        const { env, input, output } = terminal;
        const { server } = readSettings(CHAT_SETTINGS, flags, env);
        const token = env[TOKEN_VARIABLE]?.trim();
        if (!token)
          throw new StartError(`put an access token into ${TOKEN_VARIABLE}: chartroom token create`);
        // Loaded when it is asked for: no command waits for the parts of another.
        const { chat } = await import("./chat/chat.ts");
        const isWell = await chat({ server, token, agentExecutionId, input, output });
        terminal.setExitCode(isWell ? 0 : 1);
      }),
    CHAT_SETTINGS,
  );
}

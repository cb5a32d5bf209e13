import type { Command } from "commander";
import { RUNNER_SETTINGS, readRunnerConfig } from "../../config/config.ts";
import type { FlagsOf } from "../../config/settings.ts";
import { type RunUntilStopped, type Terminal, withSettings } from "./command-line.ts";
import { declareRunnerResources } from "./declare-resources.ts";

/** Declares `chartroom runner`. */
export function declareRunner(program: Command, terminal: Terminal, runUntilStopped: RunUntilStopped): void {
  const runner = program
    .command("runner")
    .description(
      "run a server's environments, agents and workflows on this machine, isolated as --isolation sets",
    )
    // The subcommands have their own --server, but this command reads the flag wherever it is written. Pass it on.
    .hook("preSubcommand", (self, command) => {
      const { server } = self.opts();
      if (server !== undefined) command.setOptionValue("server", server);
    });
  withSettings(
    runner.action((flags: FlagsOf<typeof RUNNER_SETTINGS>) =>
      runUntilStopped(async () => {
        const config = readRunnerConfig(flags, terminal.env);
        // Loaded on demand: a command does not load the modules of others.
        const { runRunner } = await import("../runner.ts");
        return runRunner(config, terminal);
      }),
    ),
    RUNNER_SETTINGS,
  );
  declareRunnerResources(runner, terminal);
}

import { Command } from "commander";
import { ConfigError, readConfig, SETTINGS } from "../config/config.ts";
import { StoreUnavailable } from "../store/store.ts";
import {
  type Flags,
  flagOf,
  type RunUntilStopped,
  type Terminal,
  withSettings,
} from "./definitions/command-line.ts";
import { declareAccount } from "./definitions/declare-account.ts";
import { declareAgent } from "./definitions/declare-agent.ts";
import { declareApproval } from "./definitions/declare-approval.ts";
import { declareCompletion } from "./definitions/declare-completion.ts";
import { declareData } from "./definitions/declare-data.ts";
import { declareFiles } from "./definitions/declare-files.ts";
import { declareInstall } from "./definitions/declare-install.ts";
import { declareLogin } from "./definitions/declare-login.ts";
import { declareOrganization } from "./definitions/declare-organization.ts";
import { declarePrebuild } from "./definitions/declare-prebuild.ts";
import { declareResources } from "./definitions/declare-resources.ts";
import { declareRun } from "./definitions/declare-run.ts";
import { declareRunner } from "./definitions/declare-runner.ts";
import { declareToken } from "./definitions/declare-token.ts";
import { declareWebhook } from "./definitions/declare-webhook.ts";
import { declareWorkflow } from "./definitions/declare-workflow.ts";
import { ExitCode, StartError } from "./start-error.ts";
import { fitHelp, wrapHelp } from "./terminal/terminal-width.ts";

/** The text that a failed command prints to standard error, and its exit code. */
export interface Failure {
  readonly text: string;
  readonly exitCode: number;
}

/** Returns a sentence for an error that the operator can fix; any other error is a bug and keeps its stack. */
export function failureOf(error: unknown): Failure {
  return {
    text: `chartroom: ${sentenceOf(error) ?? (error as Error)?.stack ?? String(error)}\n`,
    exitCode: error instanceof StartError ? error.exitCode : ExitCode.refused,
  };
}

function sentenceOf(error: unknown): string | undefined {
  if (error instanceof ConfigError || error instanceof StartError) return error.message;
  // The database became unavailable after it was opened.
  if (error instanceof StoreUnavailable)
    return `the database cannot be used: ${error.problem ?? error.message}`;
  return undefined;
}

/**
 * Declares all commands.
 *
 * @param configure called before any command exists, so its settings apply to all of them
 */
export function createProgram(
  terminal: Terminal,
  runUntilStopped: RunUntilStopped,
  configure: (program: Command) => void = () => undefined,
): Command {
  const program = new Command("chartroom");
  configure(program);
  fitHelp(program, terminal)
    .description("A self-hosted control plane for development environments and coding agents.")
    // Set this before the commands, which inherit it. It follows each message about wrong usage.
    .showHelpAfterError("Run with --help for usage.")
    .addHelpText(
      "after",
      () => `
${wrapHelp(program, "Settings of serve. Each is a flag or an environment variable; the flag takes precedence:")}

${Object.values(SETTINGS)
  .map((setting) => {
    const facts = `${setting.env}; default: ${setting.default || "none"}\n${setting.help}`;
    return `  ${flagOf(setting)}\n${wrapHelp(program, facts, 6)}\n`;
  })
  .join("")}`,
    );

  withSettings(
    program
      .command("serve")
      .description(
        "start the server; the first start creates an organization, an administrator and an access token",
      )
      .action((flags: Flags) =>
        runUntilStopped(async () => {
          const config = readConfig(flags, terminal.env);
          // Loaded on demand, like all commands, so that no command loads another one's modules.
          const { serve } = await import("./serve.ts");
          return serve(config, terminal);
        }),
      ),
    SETTINGS,
  );

  declareOrganization(program, terminal);
  declareAccount(program, terminal);
  declareAgent(program, terminal);
  declareToken(program, terminal);
  declareData(program, terminal, runUntilStopped);
  declareRunner(program, terminal, runUntilStopped);
  declareInstall(program, terminal);
  declareLogin(program, terminal);
  declareRun(program, terminal);
  declareApproval(program, terminal);
  declareWorkflow(program, terminal);
  declareResources(program, terminal);
  declarePrebuild(program, terminal);
  declareWebhook(program, terminal);
  declareFiles(program, terminal);
  declareCompletion(program, terminal);
  return program;
}

import process from "node:process";
import tab from "@bomb.sh/tab/commander";
import { Command } from "commander";
import packageJson from "../package.json" with { type: "json" };
import {
  type Flags,
  flagOf,
  type RunUntilStopped,
  type Terminal,
  withSettings,
} from "./commands/definitions/command-line.ts";
import { declareAccount } from "./commands/definitions/declare-account.ts";
import { declareAgent } from "./commands/definitions/declare-agent.ts";
import { declareApproval } from "./commands/definitions/declare-approval.ts";
import { declareData } from "./commands/definitions/declare-data.ts";
import { declareLogin } from "./commands/definitions/declare-login.ts";
import { declareOrganization } from "./commands/definitions/declare-organization.ts";
import { declareRun } from "./commands/definitions/declare-run.ts";
import { declareRunner } from "./commands/definitions/declare-runner.ts";
import { declareToken } from "./commands/definitions/declare-token.ts";
import { ExitCode, StartError } from "./commands/start-error.ts";
import { ConfigError, readConfig, SETTINGS } from "./config/config.ts";
import { flushLog } from "./log.ts";
import { StoreUnavailable } from "./store/store.ts";

// However it ends, by an uncaught exception too.
process.on("exit", flushLog);

const runUntilStopped: RunUntilStopped = async (start) => {
  const starting = start();
  let stopping = false;
  const stop = () => {
    if (stopping) return;
    stopping = true;
    starting
      .then((running) => running.stop())
      .then(
        () => process.exit(0),
        (error) => fail(error),
      );
  };
  // Before it is ready: a reader of that line may send a signal at once.
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  await (await starting).ended;
};

const terminal: Terminal = {
  env: process.env,
  print: (text) => void process.stdout.write(text),
  // Opened on demand: a server leaves its standard input alone.
  get input() {
    return process.stdin;
  },
  get output() {
    return process.stdout;
  },
  isRoot: process.getuid?.() === 0,
  signalGroup: (groupId, signal) => void process.kill(-groupId, signal),
  setExitCode: (code) => {
    process.exitCode = code;
  },
};

/** Prints a sentence for an error that the operator can fix; any other is a fault and keeps its stack. */
function fail(error: unknown): never {
  process.stderr.write(`chartroom: ${sentenceOf(error) ?? (error as Error)?.stack ?? String(error)}\n`);
  process.exit(error instanceof StartError ? error.exitCode : ExitCode.refused);
}

function sentenceOf(error: unknown): string | undefined {
  if (error instanceof ConfigError || error instanceof StartError) return error.message;
  // Of a database that went away after it was opened.
  if (error instanceof StoreUnavailable)
    return `the database cannot be used: ${error.problem ?? error.message}`;
  return undefined;
}

const program = new Command("chartroom")
  .description(
    "A control plane for development environments and coding agents that a team runs on its own machines.",
  )
  .version(
    `chartroom ${packageJson.version} on Node ${process.versions.node}`,
    "--version",
    "print the version",
  )
  .configureHelp({ showGlobalOptions: true })
  .addHelpText(
    "after",
    `
Settings of serve, each as a flag or an environment variable; the flag goes first:

${Object.values(SETTINGS)
  .map((setting) => {
    return `  ${flagOf(setting)}\n      ${setting.env}; default: ${setting.default || "none"}\n      ${setting.help}\n`;
  })
  .join("")}`,
  );

withSettings(
  program
    .command("serve")
    .description(
      "start the server; the first start makes an organization, its administrator and one access token",
    )
    .action((flags: Flags) =>
      runUntilStopped(async () => {
        const config = readConfig(flags, process.env);
        // Loaded on demand, here and for the other commands: none loads the modules of another.
        const { serve } = await import("./commands/serve.ts");
        return serve(config, terminal);
      }),
    ),
  SETTINGS,
);

declareOrganization(program, terminal);
declareAccount(program, terminal);
declareAgent(program, terminal);
declareToken(program, terminal);
declareData(program, terminal);
declareRunner(program, terminal, runUntilStopped);
declareLogin(program, terminal);
declareRun(program, terminal);
declareApproval(program, terminal);
// Last: it completes what is declared by now.
tab(program, { completionCommandName: "completion" });

program.parseAsync(process.argv).catch(fail);

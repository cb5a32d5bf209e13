import type { Readable, Writable } from "node:stream";
import { type Command, Option } from "commander";
import { type Config, DATA_SETTINGS, readConfig, SETTINGS } from "../../config/config.ts";
import { integer } from "../../config/setting-values.ts";
import type { Environment, FlagsOf, Setting, SettingTable } from "../../config/settings.ts";
import type { WriteLines } from "../../log.ts";
import type { ProcessFigures } from "../../metrics/process-metrics.ts";
import type { SignalGroup } from "../../runner/process/process-group.ts";
import type { WhenInterrupted } from "../folders/interrupted.ts";
import { StartError } from "../start-error.ts";
import { completeWith } from "../terminal/completion.ts";
import { widthOf } from "../terminal/terminal-width.ts";

/** The flags of the server's settings as the command line gives them. */
export type Flags = FlagsOf<typeof SETTINGS>;

/** The process from the commands' point of view; only main.ts accesses the process itself. */
export interface Terminal {
  readonly env: Environment;
  /** Prints to standard output. */
  print(text: string): void;
  /** Prints text that is not the command's result to standard error. */
  printError(text: string): void;
  readonly input: Readable & { readonly isTTY?: boolean };
  readonly output: Writable;
  readonly signalGroup: SignalGroup;
  /** True if the process has root's rights on the machine. */
  readonly isRoot: boolean;
  /** Absolute path of the Node that runs the process. */
  readonly nodePath: string;
  /** Writes the log of a server or a runner; absent when it goes to standard error. */
  readonly writeLog?: WriteLines;
  /** The process's figures for metrics. */
  readonly figures: ProcessFigures;
  /** Ignores interrupts until the returned function is called; absent when nobody sends them. */
  readonly ignoreInterrupts?: () => () => void;
  /** Runs work when the process is interrupted; absent when nobody interrupts it. */
  readonly whenInterrupted?: WhenInterrupted;
  /** Sets the exit code of a completed command. */
  setExitCode(code: number): void;
}

/** A service that runs until it is stopped. */
export interface RunningService {
  /** Rejects when it cannot continue; absent when nothing ends it. */
  readonly ended?: Promise<void>;
  /** Reloads the service's files; absent when it has none. Never rejects: logs unusable files. */
  reload?(): Promise<void>;
  stop(): Promise<void>;
}

/** Runs a service until the process is asked to end, then ends the process. */
export type RunUntilStopped = (start: () => Promise<RunningService>) => Promise<void>;

/** Returns the function that prints a note to standard error. */
export function noteOf({ printError }: Pick<Terminal, "printError">): (text: string) => void {
  return (text) => printError(`chartroom: ${text}\n`);
}

/** Returns the flag of a setting with its argument. */
export function flagOf({ flag, argument }: Setting<unknown>): string {
  return argument ? `${flag} <${argument}>` : flag;
}

/**
 * Adds the options of a table's settings. The help shows the variable and the default of each setting. The values are
 * validated together when they are read.
 */
export function withSettings(command: Command, table: SettingTable): Command {
  for (const setting of Object.values(table)) {
    const facts = [setting.env, setting.default && `default ${setting.default}`].filter(Boolean).join(", ");
    const option = new Option(flagOf(setting), `${setting.help} (${facts})`);
    command.addOption(completeWith(option, setting.read.choices ?? []));
  }
  return command;
}

/** Adds the settings of a command that works on the data folder while a server runs. */
export function withDataSettings(command: Command): Command {
  return withSettings(command, Object.fromEntries(DATA_SETTINGS.map((name) => [name, SETTINGS[name]])));
}

/** Runs a command on the data folder and prints its report. */
export async function runOnData(
  terminal: Terminal,
  flags: Flags,
  command: (config: Config) => Promise<string>,
): Promise<void> {
  terminal.print(await command(readConfig(flags, terminal.env)));
}

/** A list for people and scripts. */
export interface Listing {
  /** Names of the columns. */
  readonly headings: readonly string[];
  /** Values of the columns; trailing ones may be missing. */
  readonly rows: readonly (readonly string[])[];
}

/** Runs a command on the data folder that lists something; see {@link printListing}. */
export async function listOnData(
  terminal: Terminal,
  flags: Flags,
  command: (config: Config) => Promise<Listing>,
): Promise<void> {
  await printListing(terminal, await command(readConfig(flags, terminal.env)));
}

/** Prints a list: with headings at a terminal, and only rows for scripts. */
export async function printListing(terminal: Terminal, { headings, rows }: Listing): Promise<void> {
  const isTerminal = (terminal.output as { readonly isTTY?: boolean }).isTTY === true;
  if (!isTerminal) return terminal.print(rows.map((row) => `${row.join("  ")}\n`).join(""));
  const { table } = await import("../terminal/table.ts");
  terminal.print(table(headings, rows, widthOf(terminal)));
}

/** Returns a parser for a whole number whose errors name the option. */
export function numberOption(option: string, least: number, most: number): (text: string) => number {
  const read = integer(least, most);
  return (text) => {
    try {
      return read(text);
    } catch (error) {
      throw new StartError(`${option} ${(error as Error).message}`);
    }
  };
}

/** Returns the option `--retry-for` of commands that follow a run. */
export function retryOption(): Option {
  return new Option("--retry-for <seconds>", "how long to keep retrying when the server is unreachable")
    .argParser(numberOption("--retry-for", 0, 86_400))
    .default(300);
}

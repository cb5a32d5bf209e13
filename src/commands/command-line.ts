import { type Command, Option } from "commander";
import { type Config, readConfig, SETTINGS, type Setting, type SettingName } from "../config.ts";

/** The flags of settings as the command line gives them. */
export type Flags = Partial<Record<SettingName, string | boolean>>;

/** What a command knows of the process that it runs in; main.ts alone touches the process itself. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** To standard output. */
  print(text: string): void;
  /** The command has done its work, and this is its verdict. */
  setExitCode(code: number): void;
}

export const SETTING_ENTRIES = Object.entries(SETTINGS) as [SettingName, Setting<unknown>][];

/** The flag of a setting with its argument. */
export function flagOf({ flag, argument }: Setting<unknown>): string {
  return argument ? `${flag} <${argument}>` : flag;
}

/** The help names the variable and the default of each setting; the values are judged together by readConfig. */
export function withSettings(command: Command, names: readonly SettingName[]): Command {
  for (const [name, setting] of SETTING_ENTRIES) {
    if (!names.includes(name)) continue;
    const facts = [setting.env, setting.default && `default ${setting.default}`].filter(Boolean).join(", ");
    command.addOption(new Option(flagOf(setting), `${setting.help} (${facts})`));
  }
  return command;
}

/** The settings of a command that works on the data folder beside a server. */
export function withDataSettings(command: Command): Command {
  return withSettings(command, ["dataDir", "keyFile"]);
}

/** Runs a command on the data folder and prints what it has to say. */
export async function runOnData(
  terminal: Terminal,
  flags: Flags,
  command: (config: Config) => Promise<string>,
): Promise<void> {
  terminal.print(await command(readConfig(flags, terminal.env)));
}

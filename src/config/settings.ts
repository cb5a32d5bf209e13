/** One setting: its flag, its default and its reader. */
export interface Setting<T> {
  /** The long flag without its argument, such as `--port`. */
  readonly flag: string;
  /** The name of the argument in the help; a flag without one takes no value. */
  readonly argument?: string;
  readonly env: string;
  /** The default in the form of an argument; shown in the help. */
  readonly default: string;
  readonly help: string;
  /**
   * Reads a value.
   * @throws Error with a message that completes "--port ..."
   */
  readonly read: ((text: string) => T) & { readonly choices?: readonly string[] };
}

export const setting = <T>(value: Setting<T>): Setting<T> => value;

/** Settings by their names in the code. */
export type SettingTable = Readonly<Record<string, Setting<unknown>>>;

/** The values of a table's settings. */
export type Values<T extends SettingTable> = { readonly [K in keyof T]: ReturnType<T[K]["read"]> };

/** The flags of a table's settings as the command line gives them; other flags are ignored. */
export type FlagsOf<T extends SettingTable> = Readonly<Partial<Record<keyof T, string | boolean>>>;

export type Environment = Readonly<Record<string, string | undefined>>;

/** The error for unusable settings; `problems` lists every problem. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`the settings cannot be used:\n${problems.map((problem) => `  ${problem}`).join("\n")}`);
    this.problems = problems;
  }
}

/**
 * Reads settings: a flag takes precedence over its environment variable, which
 * takes precedence over the default.
 *
 * @param check finds invalid combinations; called even when single settings are
 *   unusable
 * @throws ConfigError with every problem, not only the first
 */
export function readSettings<T extends SettingTable>(
  table: T,
  flags: FlagsOf<T>,
  env: Environment,
  check: (values: Values<T>) => readonly string[] = () => [],
): Values<T> {
  const problems: string[] = [];
  const entries = Object.entries(table).map(([name, setting]) => {
    const flag = flags[name];
    const source = flag !== undefined ? setting.flag : setting.env;
    try {
      return [name, setting.read(String(flag ?? env[setting.env] ?? setting.default))];
    } catch (error) {
      problems.push(`${source} ${(error as Error).message}`);
      return [name, undefined];
    }
  });
  const values = Object.fromEntries(entries) as Values<T>;
  problems.push(...check(values));
  if (problems.length > 0) throw new ConfigError(problems);
  return values;
}

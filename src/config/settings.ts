/** One setting: how it is written, what it is when nothing is written, and how it is read. */
export interface Setting<T> {
  /** Long flag without its argument, such as `--port`. */
  readonly flag: string;
  /** Name of the argument in the help; a flag without one takes no value. */
  readonly argument?: string;
  readonly env: string;
  /** The default as one would write it; shown in the help. */
  readonly default: string;
  readonly help: string;
  /** @throws Error with a message that completes "--port ..." */
  readonly read: (text: string) => T;
}

export const setting = <T>(value: Setting<T>): Setting<T> => value;

/** Settings by the name that the code gives them. */
export type SettingTable = Readonly<Record<string, Setting<unknown>>>;

/** What the settings of a table say. */
export type Values<T extends SettingTable> = { readonly [K in keyof T]: ReturnType<T[K]["read"]> };

/** The flags of a table's settings as the command line gives them; the names of other flags are not looked at. */
export type FlagsOf<T extends SettingTable> = Readonly<Partial<Record<keyof T, string | boolean>>>;

export type Environment = Readonly<Record<string, string | undefined>>;

/** The settings cannot be used; `problems` names every one. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`the settings cannot be used:\n${problems.map((problem) => `  ${problem}`).join("\n")}`);
    this.problems = problems;
  }
}

/**
 * Reads settings: a flag goes before its environment variable, which goes before
 * the default.
 *
 * @param check finds what does not go together; called even when single settings are unusable
 * @throws ConfigError with every problem there is, not only the first
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

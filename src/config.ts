import { join } from "node:path";

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

const setting = <T>(value: Setting<T>): Setting<T> => value;

/** Every setting of `chartroom serve`. */
export const SETTINGS = {
  host: setting({
    flag: "--host",
    argument: "address",
    env: "CHARTROOM_HOST",
    default: "127.0.0.1",
    help: "address to listen on; 0.0.0.0 or :: for every interface",
    read: nonEmpty,
  }),
  port: setting({
    flag: "--port",
    argument: "number",
    env: "CHARTROOM_PORT",
    default: "8080",
    help: "port to listen on; 0 picks a free one",
    read: integer(0, 65_535),
  }),
  dataDir: setting({
    flag: "--data-dir",
    argument: "folder",
    env: "CHARTROOM_DATA_DIR",
    default: "./data",
    help: "folder of the database and, unless set, of the key file",
    read: nonEmpty,
  }),
  baseUrl: setting({
    flag: "--base-url",
    argument: "url",
    env: "CHARTROOM_BASE_URL",
    default: "",
    help: "URL under which clients reach the server; by default made from host and port",
    read: baseUrl,
  }),
  keyFile: setting({
    flag: "--key-file",
    argument: "file",
    env: "CHARTROOM_KEY_FILE",
    default: "",
    help: "file of the server's secret, made on the first start; by default key.json in the data folder",
    read: (text: string) => text,
  }),
  tlsCert: setting({
    flag: "--tls-cert",
    argument: "file",
    env: "CHARTROOM_TLS_CERT",
    default: "",
    help: "certificate chain in PEM; with --tls-key the port speaks TLS",
    read: (text: string) => text,
  }),
  tlsKey: setting({
    flag: "--tls-key",
    argument: "file",
    env: "CHARTROOM_TLS_KEY",
    default: "",
    help: "private key of the certificate in PEM",
    read: (text: string) => text,
  }),
  corsOrigins: setting({
    flag: "--cors-origins",
    argument: "origins",
    env: "CHARTROOM_CORS_ORIGINS",
    default: "",
    help: "origins, separated by commas, whose pages may call the server; none by default",
    read: origins,
  }),
  allowUnknownFields: setting({
    flag: "--allow-unknown-fields",
    env: "CHARTROOM_ALLOW_UNKNOWN_FIELDS",
    default: "false",
    help: "skip JSON fields that the contract does not know instead of refusing the request",
    read: boolean,
  }),
  allowOrganizationCreation: setting({
    flag: "--allow-organization-creation",
    env: "CHARTROOM_ALLOW_ORGANIZATION_CREATION",
    default: "false",
    help: "let every user create organizations; otherwise only the command line does",
    read: boolean,
  }),
  countLimit: setting({
    flag: "--count-limit",
    argument: "number",
    env: "CHARTROOM_COUNT_LIMIT",
    default: "1000",
    help: "counts of lists stop here and say that there are more",
    read: integer(1, 1_000_000),
  }),
  maxTimeout: setting({
    flag: "--max-timeout",
    argument: "seconds",
    env: "CHARTROOM_MAX_TIMEOUT",
    default: "300",
    help: "longest deadline of a call; one that asks for more gets this",
    read: integer(1, 86_400),
  }),
  popularityInterval: setting({
    flag: "--popularity-interval",
    argument: "seconds",
    env: "CHARTROOM_POPULARITY_INTERVAL",
    default: "300",
    help: "how often the popularity of projects with new environments is computed",
    read: integer(1, 86_400),
  }),
  removalInterval: setting({
    flag: "--removal-interval",
    argument: "seconds",
    env: "CHARTROOM_REMOVAL_INTERVAL",
    default: "10",
    help: "how often projects that are pending deletion and expired exchange tokens are removed",
    read: integer(1, 86_400),
  }),
  eventRetention: setting({
    flag: "--event-retention",
    argument: "days",
    env: "CHARTROOM_EVENT_RETENTION",
    default: "30",
    help: "how long events are kept for streams that resume; the audit trail is kept for good",
    read: integer(1, 3_650),
  }),
  logLevel: setting({
    flag: "--log-level",
    argument: "level",
    env: "CHARTROOM_LOG_LEVEL",
    default: "info",
    help: "debug, info, warn, error or silent; the log goes to standard error",
    read: oneOf(["debug", "info", "warn", "error", "silent"]),
  }),
} as const;

export type SettingName = keyof typeof SETTINGS;
export type Config = { readonly [K in SettingName]: ReturnType<(typeof SETTINGS)[K]["read"]> };

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
 * Reads the settings: a flag goes before its environment variable, which goes
 * before the default.
 *
 * @throws ConfigError with every problem there is, not only the first
 */
export function readConfig(
  flags: Partial<Record<SettingName, string | boolean>>,
  env: Readonly<Record<string, string | undefined>>,
): Config {
  const problems: string[] = [];
  const entries = (Object.entries(SETTINGS) as [SettingName, Setting<unknown>][]).map(([name, setting]) => {
    const flag = flags[name];
    const source = flag !== undefined ? setting.flag : setting.env;
    try {
      return [name, setting.read(String(flag ?? env[setting.env] ?? setting.default))];
    } catch (error) {
      problems.push(`${source} ${(error as Error).message}`);
      return [name, undefined];
    }
  });
  const config = Object.fromEntries(entries) as Config;
  if ((config.tlsCert === "") !== (config.tlsKey === ""))
    problems.push("--tls-cert and --tls-key go together");
  for (const name of Object.keys(env)) {
    const known = Object.values(SETTINGS).some((setting) => setting.env === name);
    if (name.startsWith("CHARTROOM_") && !known) problems.push(`${name} is no setting; see chartroom --help`);
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
}

/** File of the server's secret. */
export function keyFileOf(config: Pick<Config, "keyFile" | "dataDir">): string {
  return config.keyFile || join(config.dataDir, "key.json");
}

function nonEmpty(text: string): string {
  if (text.trim() === "") throw new Error("must not be empty");
  return text;
}

function integer(least: number, most: number): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (!/^\d+$/.test(text) || number < least || number > most) {
      throw new Error(`must be a whole number from ${least} to ${most}, not "${text}"`);
    }
    return number;
  };
}

function boolean(text: string): boolean {
  if (text !== "true" && text !== "false") throw new Error(`must be true or false, not "${text}"`);
  return text === "true";
}

function oneOf<T extends string>(allowed: readonly T[]): (text: string) => T {
  return (text) => {
    const found = allowed.find((each) => each === text);
    if (found === undefined) throw new Error(`must be one of ${allowed.join(", ")}, not "${text}"`);
    return found;
  };
}

function baseUrl(text: string): string {
  if (text === "") return "";
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash || url.username || url.password) {
    throw new Error(`must be an http or https URL without query, fragment or user, not "${text}"`);
  }
  // Not the text itself: the parser forgives blanks, missing slashes and an empty query.
  return (url.origin + url.pathname).replace(/\/+$/, "");
}

function origins(text: string): ReadonlySet<string> {
  const list = text.split(",").flatMap((each) => each.trim() || []);
  for (const each of list) {
    if (URL.parse(each)?.origin !== each)
      throw new Error(`must list origins such as https://console.example.org, not "${each}"`);
  }
  return new Set(list);
}

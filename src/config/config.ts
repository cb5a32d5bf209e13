import { join } from "node:path";
import { PAGE_BYTES } from "../domain/page.ts";
import { DATABASE_SETTINGS } from "./database-settings.ts";
import { ISOLATION_SETTINGS } from "./isolation-settings.ts";
import { LISTENER_SETTINGS, SIGN_IN_SETTINGS } from "./listener-settings.ts";
import { INTERVAL_SETTINGS, STORAGE_SETTINGS } from "./maintenance-settings.ts";
import { REMOTE_SETTINGS, REPOSITORY_CACHE_SETTINGS, WEBHOOK_SETTINGS } from "./remote-settings.ts";
import { boolean, integer, oneOf, serverUrl } from "./setting-values.ts";
import { type Environment, type FlagsOf, readSettings, setting, type Values } from "./settings.ts";
import { similarName } from "./similar-name.ts";
import { defaultDataDir } from "./state-folder.ts";
import { LOG_SETTINGS, logLevel, TELEMETRY_SETTINGS } from "./telemetry-settings.ts";
import { TRAFFIC_SETTINGS } from "./traffic-settings.ts";

export { ConfigError } from "./settings.ts";

/**
 * The environment variable of a runner's exchange token. It is a secret, so it has
 * no flag: every user of the machine can see flags.
 */
export const EXCHANGE_TOKEN_VARIABLE = "CHARTROOM_EXCHANGE_TOKEN";

/** The environment variable of the token that `chartroom agent chat` uses; it has no flag either. */
export const TOKEN_VARIABLE = "CHARTROOM_TOKEN";

/** Variables that runners set for commands and agents, one of which may start a server. */
const SET_FOR_COMMANDS =
  /^CHARTROOM_(URL|ENVIRONMENT_(ID|TOKEN)|(WORKFLOW|EXECUTION|ACTION)_ID|OUTPUTS|PULL_REQUEST|PARAMETER_\w+|AGENT_((EXECUTION|SESSION)_ID|STARTS|(TURN_)?MODES?|MODEL|REASONING_EFFORT|SERVICE_TIER|MCP_DISABLED|COMMAND_DENY_LIST|SCM_\w+))$/;

/** Reads a number of slots; the maximum is that of leases in one call (contract, LeaseWorkRequest.max_leases). */
const slots = integer(1, 32);

/** Reads a number of agent slots; the maximum is high since a waiting agent costs at most one process. */
const agentSlots = integer(1, 10_000);

/** Every setting of `chartroom serve`. */
export const SETTINGS = {
  ...LISTENER_SETTINGS,
  dataDir: setting({
    flag: "--data-dir",
    argument: "folder",
    env: "CHARTROOM_DATA_DIR",
    default: "",
    help: "folder of the database and the key file; by default, ./data in a checkout; otherwise /var/lib/chartroom for root, or data in $XDG_STATE_HOME/chartroom or ~/.local/state/chartroom",
    read: (text: string) => text,
  }),
  ...DATABASE_SETTINGS,
  keyFile: setting({
    flag: "--key-file",
    argument: "file",
    env: "CHARTROOM_KEY_FILE",
    default: "",
    help: "key file of the server, created on the first start; by default key.json in the data folder",
    read: (text: string) => text,
  }),
  allowUnknownFields: setting({
    flag: "--allow-unknown-fields",
    env: "CHARTROOM_ALLOW_UNKNOWN_FIELDS",
    default: "false",
    help: "ignore unknown JSON fields instead of rejecting the request",
    read: boolean,
  }),
  allowOrganizationCreation: setting({
    flag: "--allow-organization-creation",
    env: "CHARTROOM_ALLOW_ORGANIZATION_CREATION",
    default: "false",
    help: "let every user create organizations; otherwise only the command line can",
    read: boolean,
  }),
  countLimit: setting({
    flag: "--count-limit",
    argument: "number",
    env: "CHARTROOM_COUNT_LIMIT",
    default: "1000",
    help: "maximum count of a list's elements; beyond it, the count says that there are more",
    read: integer(1, 1_000_000),
  }),
  pageBytes: setting({
    flag: "--page-bytes",
    argument: "number",
    env: "CHARTROOM_PAGE_BYTES",
    default: String(PAGE_BYTES),
    help: "maximum size of a page of a list, which has at least one element",
    read: integer(1, PAGE_BYTES),
  }),
  firstTokenFile: setting({
    flag: "--first-token-file",
    argument: "file",
    env: "CHARTROOM_FIRST_TOKEN_FILE",
    default: "",
    help: "file to which the first start writes the administrator's token, instead of printing it",
    read: (text: string) => text,
  }),
  ...TRAFFIC_SETTINGS,
  maxTimeout: setting({
    flag: "--max-timeout",
    argument: "seconds",
    env: "CHARTROOM_MAX_TIMEOUT",
    default: "300",
    help: "maximum deadline of a call; longer deadlines are shortened to it",
    read: integer(1, 86_400),
  }),
  ...STORAGE_SETTINGS,
  fastPath: setting({
    flag: "--fast-path",
    argument: "on|off",
    env: "CHARTROOM_FAST_PATH",
    default: "on",
    help: "answer unary calls on a faster path; off uses the protocol library for all calls",
    read: oneOf(["on", "off"]),
  }),
  ...SIGN_IN_SETTINGS,
  ...INTERVAL_SETTINGS,
  ...TELEMETRY_SETTINGS,
  localRunner: setting({
    flag: "--local-runner",
    env: "CHARTROOM_LOCAL_RUNNER",
    default: "false",
    help: "run environments, agents and workflows on this machine, isolated as --isolation sets",
    read: boolean,
  }),
  sampleData: setting({
    flag: "--sample-data",
    env: "CHARTROOM_SAMPLE_DATA",
    default: "false",
    help: "fill a new or unused data folder with sample projects, runs and workflows, and start the local runner; fails if the folder is in use",
    read: boolean,
  }),
  localRunnerWorkDir: setting({
    flag: "--local-runner-work-dir",
    argument: "folder",
    env: "CHARTROOM_LOCAL_RUNNER_WORK_DIR",
    default: "",
    help: "folder of the local runner's workspaces; by default, a folder for this server in $XDG_STATE_HOME/chartroom or ~/.local/state/chartroom",
    read: (text: string) => text,
  }),
  localRunnerSlots: setting({
    flag: "--local-runner-slots",
    argument: "number",
    env: "CHARTROOM_LOCAL_RUNNER_SLOTS",
    default: "4",
    help: "maximum number of pieces of work, not counting agents, that the local runner runs at the same time",
    read: slots,
  }),
  localRunnerAgentSlots: setting({
    flag: "--local-runner-agent-slots",
    argument: "number",
    env: "CHARTROOM_LOCAL_RUNNER_AGENT_SLOTS",
    default: "8",
    help: "maximum number of agents that the local runner runs at the same time, including those that wait for input",
    read: agentSlots,
  }),
  ...{ ...REPOSITORY_CACHE_SETTINGS, ...ISOLATION_SETTINGS },
  ...{ ...REMOTE_SETTINGS, ...WEBHOOK_SETTINGS },
  ...LOG_SETTINGS,
} as const;

/** Every setting of `chartroom runner`. */
export const RUNNER_SETTINGS = {
  server: setting({
    flag: "--server",
    argument: "url",
    env: "CHARTROOM_SERVER",
    default: "http://127.0.0.1:8080",
    help: "URL of the server",
    read: serverUrl,
  }),
  stateDir: setting({
    flag: "--state-dir",
    argument: "folder",
    env: "CHARTROOM_STATE_DIR",
    default: "",
    help: "folder of the runner's token and workspaces; by default, a folder for the server in $XDG_STATE_HOME/chartroom or ~/.local/state/chartroom",
    read: (text: string) => text.trim(),
  }),
  exchangeTokenFile: setting({
    flag: "--exchange-token-file",
    argument: "file",
    env: "CHARTROOM_EXCHANGE_TOKEN_FILE",
    default: "",
    help: `file with the runner's exchange token, which is needed only once; by default, ${EXCHANGE_TOKEN_VARIABLE} is used`,
    read: (text: string) => text,
  }),
  caFile: setting({
    flag: "--ca-file",
    argument: "file",
    env: "CHARTROOM_CA_FILE",
    default: "",
    help: "PEM file of certificate authorities to trust in addition to Node's own",
    read: (text: string) => text,
  }),
  slots: setting({
    flag: "--slots",
    argument: "number",
    env: "CHARTROOM_SLOTS",
    default: "4",
    help: "maximum number of pieces of work, not counting agents, at the same time",
    read: slots,
  }),
  agentSlots: setting({
    flag: "--agent-slots",
    argument: "number",
    env: "CHARTROOM_AGENT_SLOTS",
    default: "8",
    help: "maximum number of agents at the same time, including those that wait for input",
    read: agentSlots,
  }),
  ...{ ...REPOSITORY_CACHE_SETTINGS, ...ISOLATION_SETTINGS },
  ...REMOTE_SETTINGS,
  logLevel,
} as const;

export type SettingName = keyof typeof SETTINGS;
export type Config = Values<typeof SETTINGS>;
export type RunnerConfig = Values<typeof RUNNER_SETTINGS>;

/** The settings of commands that work on the data. */
export type DataConfig = Pick<Config, (typeof DATA_SETTINGS)[number]>;

/** Names of the settings that locate the data and the keys. */
export const DATA_SETTINGS = [
  "dataDir",
  "keyFile",
  "databaseUrl",
  "databasePasswordFile",
  "databaseConnections",
] as const;

/**
 * Reads the settings of `chartroom serve` and of the commands on its data folder.
 *
 * @throws ConfigError with every problem
 */
export function readConfig(flags: FlagsOf<typeof SETTINGS>, env: Environment): Config {
  const config = readSettings(SETTINGS, flags, env, ({ tlsCert, tlsKey }) => [
    ...((tlsCert === "") === (tlsKey === "")
      ? []
      : ["--tls-cert and --tls-key go together: set both, or neither"]),
    ...unknownVariables(env),
  ]);
  return { ...config, dataDir: config.dataDir.trim() || defaultDataDir(env) };
}

/**
 * Reads the settings of `chartroom runner`.
 *
 * @throws ConfigError with every problem
 */
export function readRunnerConfig(flags: FlagsOf<typeof RUNNER_SETTINGS>, env: Environment): RunnerConfig {
  return readSettings(RUNNER_SETTINGS, flags, env, () => unknownVariables(env));
}

/** Returns the file of the server's secrets. */
export function keyFileOf(config: Pick<Config, "keyFile" | "dataDir">): string {
  return config.keyFile || join(config.dataDir, "key.json");
}

/** Finds variables that look like settings but are unknown, and are most likely mistyped. */
function unknownVariables(env: Environment): string[] {
  const all = [...Object.values(SETTINGS), ...Object.values(RUNNER_SETTINGS)];
  const known = new Set([EXCHANGE_TOKEN_VARIABLE, TOKEN_VARIABLE, ...all.map((each) => each.env)]);
  const isKnown = (name: string) => known.has(name) || SET_FOR_COMMANDS.test(name);
  const odd = Object.keys(env).filter((name) => name.startsWith("CHARTROOM_") && !isKnown(name));
  return odd.map((name) => {
    const near = similarName(name, known);
    return `${name} is no setting; ${near ? `did you mean ${near}?` : "see chartroom --help"}`;
  });
}

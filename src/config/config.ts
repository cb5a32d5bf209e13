import { join } from "node:path";
import { PAGE_BYTES } from "../domain/page.ts";
import { DATABASE_SETTINGS } from "./database-settings.ts";
import { ISOLATION_SETTINGS } from "./isolation-settings.ts";
import { LOCAL_RUNNER_SETTINGS } from "./local-runner-settings.ts";
import { INTERVAL_SETTINGS, STORAGE_SETTINGS } from "./maintenance-settings.ts";
import { REMOTE_SETTINGS, REPOSITORY_CACHE_SETTINGS } from "./remote-settings.ts";
import { baseUrl, boolean, integer, nonEmpty, oneOf, origins, serverUrl } from "./setting-values.ts";
import { type Environment, type FlagsOf, readSettings, setting, type Values } from "./settings.ts";
import { SIGN_IN_SETTINGS } from "./sign-in-settings.ts";
import { TELEMETRY_SETTINGS } from "./telemetry-settings.ts";
import { TRAFFIC_SETTINGS } from "./traffic-settings.ts";

export { ConfigError } from "./settings.ts";

/**
 * The variable of a runner's exchange token: a secret, so no flag exists for it,
 * since every user of the machine sees flags.
 */
export const EXCHANGE_TOKEN_VARIABLE = "CHARTROOM_EXCHANGE_TOKEN";

/** The variable of the token with which `chartroom agent chat` calls; no flag exists for it either. */
export const TOKEN_VARIABLE = "CHARTROOM_TOKEN";

/** Variables that runners set for commands and agents, one of which may start a server. */
const SET_FOR_COMMANDS =
  /^CHARTROOM_(URL|ENVIRONMENT_(ID|TOKEN)|(WORKFLOW|EXECUTION|ACTION)_ID|OUTPUTS|PULL_REQUEST|PARAMETER_\w+|AGENT_((EXECUTION|SESSION)_ID|STARTS|(TURN_)?MODES?|MODEL|REASONING_EFFORT|SERVICE_TIER|MCP_DISABLED|COMMAND_DENY_LIST|SCM_\w+))$/;

/** Maximum of leases in one call (contract, LeaseWorkRequest.max_leases). */
const slots = integer(1, 32);

/** A waiting agent costs one process at most. */
const agentSlots = integer(1, 10_000);

const logLevel = setting({
  flag: "--log-level",
  argument: "level",
  env: "CHARTROOM_LOG_LEVEL",
  default: "info",
  help: "debug, info, warn, error or silent; the log goes to standard error",
  read: oneOf(["debug", "info", "warn", "error", "silent"]),
});

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
  ...DATABASE_SETTINGS,
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
  pageBytes: setting({
    flag: "--page-bytes",
    argument: "number",
    env: "CHARTROOM_PAGE_BYTES",
    default: String(PAGE_BYTES),
    help: "pages of lists end here before they are full, with at least one element",
    read: integer(1, PAGE_BYTES),
  }),
  ...TRAFFIC_SETTINGS,
  maxTimeout: setting({
    flag: "--max-timeout",
    argument: "seconds",
    env: "CHARTROOM_MAX_TIMEOUT",
    default: "300",
    help: "longest deadline of a call; one that asks for more gets this",
    read: integer(1, 86_400),
  }),
  ...STORAGE_SETTINGS,
  fastPath: setting({
    flag: "--fast-path",
    argument: "on|off",
    env: "CHARTROOM_FAST_PATH",
    default: "on",
    help: "answer unary calls over a path of the server's own; off leaves all calls to the protocol library, slower",
    read: oneOf(["on", "off"]),
  }),
  ...SIGN_IN_SETTINGS,
  ...INTERVAL_SETTINGS,
  ...TELEMETRY_SETTINGS,
  ...LOCAL_RUNNER_SETTINGS,
  localRunnerSlots: setting({
    flag: "--local-runner-slots",
    argument: "number",
    env: "CHARTROOM_LOCAL_RUNNER_SLOTS",
    default: "4",
    help: "how many pieces of work other than agents the local runner carries out at the same time",
    read: slots,
  }),
  localRunnerAgentSlots: setting({
    flag: "--local-runner-agent-slots",
    argument: "number",
    env: "CHARTROOM_LOCAL_RUNNER_AGENT_SLOTS",
    default: "8",
    help: "how many agents the local runner runs at the same time, those that wait for input among them",
    read: agentSlots,
  }),
  ...{ ...REPOSITORY_CACHE_SETTINGS, ...ISOLATION_SETTINGS },
  ...REMOTE_SETTINGS,
  logLevel,
} as const;

/** Every setting of `chartroom runner`. */
export const RUNNER_SETTINGS = {
  server: setting({
    flag: "--server",
    argument: "url",
    env: "CHARTROOM_SERVER",
    default: "http://127.0.0.1:8080",
    help: "URL of the server that gives out the work",
    read: serverUrl,
  }),
  stateDir: setting({
    flag: "--state-dir",
    argument: "folder",
    env: "CHARTROOM_STATE_DIR",
    default: "",
    help: "folder of the runner's token and of its workspaces; by default one for the server in $XDG_STATE_HOME/chartroom, or ~/.local/state/chartroom",
    read: (text: string) => text.trim(),
  }),
  exchangeTokenFile: setting({
    flag: "--exchange-token-file",
    argument: "file",
    env: "CHARTROOM_EXCHANGE_TOKEN_FILE",
    default: "",
    help: `file that holds the runner's exchange token, which is needed once; by default it is read from ${EXCHANGE_TOKEN_VARIABLE}`,
    read: (text: string) => text,
  }),
  slots: setting({
    flag: "--slots",
    argument: "number",
    env: "CHARTROOM_SLOTS",
    default: "4",
    help: "how many pieces of work other than agents are carried out at the same time",
    read: slots,
  }),
  agentSlots: setting({
    flag: "--agent-slots",
    argument: "number",
    env: "CHARTROOM_AGENT_SLOTS",
    default: "8",
    help: "how many agents run at the same time, those that wait for input among them",
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

/** Names of the settings that say where the data and the keys are. */
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
 * @throws ConfigError with every problem there is
 */
export function readConfig(flags: FlagsOf<typeof SETTINGS>, env: Environment): Config {
  return readSettings(SETTINGS, flags, env, ({ tlsCert, tlsKey }) => [
    ...((tlsCert === "") === (tlsKey === "") ? [] : ["--tls-cert and --tls-key go together"]),
    ...unknownVariables(env),
  ]);
}

/**
 * Reads the settings of `chartroom runner`.
 *
 * @throws ConfigError with every problem there is
 */
export function readRunnerConfig(flags: FlagsOf<typeof RUNNER_SETTINGS>, env: Environment): RunnerConfig {
  return readSettings(RUNNER_SETTINGS, flags, env, () => unknownVariables(env));
}

/** Returns the file of the server's secrets. */
export function keyFileOf(config: Pick<Config, "keyFile" | "dataDir">): string {
  return config.keyFile || join(config.dataDir, "key.json");
}

/** Finds variables that look like settings and are none: most likely mistyped. */
function unknownVariables(env: Environment): string[] {
  const all = [...Object.values(SETTINGS), ...Object.values(RUNNER_SETTINGS)];
  const known = new Set([EXCHANGE_TOKEN_VARIABLE, TOKEN_VARIABLE, ...all.map((each) => each.env)]);
  const isKnown = (name: string) => known.has(name) || SET_FOR_COMMANDS.test(name);
  const odd = Object.keys(env).filter((name) => name.startsWith("CHARTROOM_") && !isKnown(name));
  return odd.map((name) => `${name} is no setting; see chartroom --help`);
}

import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { commandEnvironment, type Programs } from "../process/command.ts";
import { type EgressRule, targetOfUrl } from "./egress-rules.ts";

/** Configuration files of package managers, of the runner's user or of the whole machine. */
const FILES = [
  ".npmrc",
  ".yarnrc.yml",
  ".config/pip/pip.conf",
  ".pip/pip.conf",
  ".config/uv/uv.toml",
  ".cargo/config.toml",
  ".config/go/env",
  ".gemrc",
  ".bundle/config",
  ".m2/settings.xml",
  "/etc/npmrc",
  "/etc/pip.conf",
  "/etc/uv/uv.toml",
];

/** Environment variables of the same package managers. */
const VARIABLES =
  /^(npm_config_registry|yarn_npm_registry_server|pip_(extra_)?index_url|uv_(default_index|index|index_url|extra_index_url)|goproxy|cargo_registries_\w+_index)$/i;

/** Commands that print a package manager's registry, even if none is configured. */
const QUESTIONS = [
  ["npm", "config", "get", "registry"],
  ["go", "env", "GOPROXY"],
] as const;
const QUESTION_MS = 20_000;

export interface MachineSettings {
  /** The programs of the runner. */
  readonly programs: Programs;
  /** The environment variables that the runner was started with. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The home of the runner's user; that of the system when absent. */
  readonly home?: string;
}

/** Returns the registries that the package managers on this machine are configured to use. */
export async function readMachineRegistries(settings: MachineSettings): Promise<readonly EgressRule[]> {
  const { env, home = homedir() } = settings;
  const files = FILES.map((name) =>
    readFile(join(name.startsWith("/") ? "/" : home, name), "utf8").catch(() => ""),
  );
  const variables = Object.entries(env).map(([name, value]) => (VARIABLES.test(name) ? (value ?? "") : ""));
  const answers = QUESTIONS.map((question) => ask(settings, home, question));
  const texts = await Promise.all([...files, ...variables, ...answers]);
  const targets = texts.flatMap(addressesIn).flatMap((each) => targetOfUrl(each) ?? []);
  const distinct = new Map(targets.map(({ host, port }) => [`${host} ${port}`, { host, port }]));
  return [...distinct.values()].map(({ host, port }) => ({ name: "registries", host, ports: [port] }));
}

/** The setting of a network proxy, through which work would reach every host. Does not match GOPROXY, a registry. */
const PROXY_SETTING = /^\s*[:"']*([\w.:-]*[_.:-])?(https?[_-]?)?proxy["']?\s*[:=]/i;

/** Returns the URLs in a configuration text, without those in comments, XML namespaces and proxy settings. */
function addressesIn(text: string): string[] {
  const settings = text
    .replace(/<!--[\s\S]*?-->/g, "")
    .replace(/\sxmlns(:\w+)?="[^"]*"|\s\w+:schemaLocation="[^"]*"/g, "");
  return settings
    .split("\n")
    .filter((line) => !/^\s*[#;]/.test(line) && !PROXY_SETTING.test(line))
    .flatMap((line) => line.match(/https?:\/\/[^\s"'<>,|]+/g) ?? []);
}

async function ask(
  { programs }: MachineSettings,
  home: string,
  [program, ...args]: (typeof QUESTIONS)[number],
): Promise<string> {
  const environment = commandEnvironment(programs, home);
  const command = { program, args, folder: "/", environment, timeoutMs: QUESTION_MS, keepBytes: 10_000 };
  // A package manager that is not installed has no registry.
  return programs.run(command).then(
    ({ exit, stdout }) => (exit === 0 ? stdout.toString() : ""),
    () => "",
  );
}

import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { commandEnvironment, type Programs } from "../process/command.ts";
import { type EgressRule, targetOfUrl } from "./egress-rules.ts";

/** Settings of the clients of package registries, in the home of the runner's user or of the whole machine. */
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

/** Variables of the same clients. */
const VARIABLES =
  /^(npm_config_registry|yarn_npm_registry_server|pip_(extra_)?index_url|uv_(default_index|index|index_url|extra_index_url)|goproxy|cargo_registries_\w+_index)$/i;

/** Clients that tell their registry, also where nobody has set one. */
const QUESTIONS = [
  ["npm", "config", "get", "registry"],
  ["go", "env", "GOPROXY"],
] as const;
const QUESTION_MS = 20_000;

export interface MachineSettings {
  /** The programs of the runner. */
  readonly programs: Programs;
  /** The variables that the runner was started with. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The home of the runner's user; that of the system when absent. */
  readonly home?: string;
}

/** Returns the registries that the clients on this machine are set to. */
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

/** A client's way out of the machine, by which work would reach everything. GOPROXY is a registry. */
const PROXY_SETTING = /^\s*[:"']*([\w.:-]*[_.:-])?(https?[_-]?)?proxy["']?\s*[:=]/i;

/** Returns the addresses in settings, without those of remarks, of names of XML and of proxies. */
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
  // A client that is not installed has no registry.
  return programs.run(command).then(
    ({ exit, stdout }) => (exit === 0 ? stdout.toString() : ""),
    () => "",
  );
}

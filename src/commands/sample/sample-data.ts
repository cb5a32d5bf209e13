import { execFile } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { type Config, SETTINGS, type SettingName } from "../../config/config.ts";
import { givenDatabaseUrl } from "../../config/database-settings.ts";
import { hadOrganization, hasOrganization, isUnused } from "../../store/identity/organization.ts";
import type { Reader } from "../../store/store.ts";
import { placeOf } from "../open-data.ts";
import { StartError } from "../start-error.ts";

const run = promisify(execFile);

const ROOT = join(import.meta.dirname, "../../..");

/** The program of the sample's agent. */
export const SAMPLE_AGENT = join(ROOT, "examples/agents/scripted-agent.js");

/** The packages, which include the Node that runs the program. */
const PACKAGES = join(ROOT, "node_modules");

/** The organization that holds all sample data; removing it removes everything. */
export const SAMPLE_ORGANIZATION = "Sample organization";

/**
 * Returns the settings of a server with sample data. Its work needs the local runner, the sample's repositories and
 * its agent.
 */
export function sampleSettings(config: Config): Config {
  const isolationRead = [...config.isolationRead, dirname(SAMPLE_AGENT), PACKAGES];
  return { ...config, localRunner: true, allowFileRemotes: true, isolationRead };
}

/** Returns the folder of the sample's repositories. It is outside the data folder, which no work may see. */
export function sampleFolder({ dataDir }: Pick<Config, "dataDir">): string {
  return `${resolve(dataDir)}-sample`;
}

/** Requires that there is no data beyond that of a first start. @throws StartError */
export async function requireFreshData(db: Reader, config: Config): Promise<void> {
  const folder = sampleFolder(config);
  const isFresh = (await hasOrganization(db)) ? await isUnused(db) : !(await hadOrganization(db));
  if (!isFresh) {
    throw new StartError(
      `--sample-data fills a fresh folder, and ${placeOf(config)} has data: name another one with --data-dir, or leave ` +
        `--sample-data out to go on with what is there (a sample goes on with ${flagsOf(config)})`,
    );
  }
  if (existsSync(folder)) {
    throw new StartError(
      `--sample-data makes its repositories in ${folder}, which is there already: remove it, or name another folder with --data-dir`,
    );
  }
}

/** Returns the flags that restart a server with sample data, at the same address and on the same data. */
export function flagsOf(config: Config): string {
  const read = inShell(config.isolationRead.join(":"));
  return `--local-runner --allow-file-remotes --isolation-read ${read}${changedFlags(config, SERVER_SETTINGS)}${dataFlags(config)}`;
}

/** Returns the flags of the data, each after a space; empty for the data of a checkout. */
export function dataFlags(config: Config): string {
  const folder = config.dataDir === "./data" ? "" : ` --data-dir ${inShell(config.dataDir)}`;
  return folder + changedFlags(config, ["keyFile", "databaseUrl", "databasePasswordFile"]);
}

/** Names of the settings for the address and the work of a server with sample data. */
const SERVER_SETTINGS: readonly SettingName[] = [
  "host",
  "port",
  "baseUrl",
  "tlsCert",
  "tlsKey",
  "localRunnerWorkDir",
  "isolation",
  "isolationImage",
];

/** Returns the flags of settings whose values are not the default, each after a space. */
function changedFlags(config: Config, names: readonly SettingName[]): string {
  const given = { ...config, databaseUrl: givenDatabaseUrl(config.databaseUrl) };
  const changed = names.filter((name) => String(given[name]) !== SETTINGS[name].default);
  return changed.map((name) => ` ${SETTINGS[name].flag} ${inShell(String(given[name]))}`).join("");
}

/** Quotes a text as one shell word. */
const inShell = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** The sample's repositories by name: their files and content. */
const REPOSITORIES = {
  hello: {
    "README.md": "# Hello\n\nA repository of Chartroom's sample data.\n",
    "hello.txt": "Hello, world\n",
  },
  tools: {
    "README.md": "# Tools\n\nAnother repository of the sample data.\n",
    "count.sh": "#!/bin/sh\nwc -l < README.md\n",
  },
} as const;

/** The URLs of the repositories by name. */
export type SampleRepositories = Readonly<Record<keyof typeof REPOSITORIES, string>>;

/** Creates the sample's repositories. */
export async function makeRepositories(config: Config): Promise<SampleRepositories> {
  const urls = Object.entries(REPOSITORIES).map(async ([name, files]) => {
    const folder = join(sampleFolder(config), name);
    mkdirSync(folder, { recursive: true });
    for (const [file, content] of Object.entries(files)) writeFileSync(join(folder, file), content);
    const git = (...args: string[]) =>
      run("git", ["-c", "user.name=Sample", "-c", "user.email=sample@localhost", ...args], { cwd: folder });
    await git("init", "--quiet", "--initial-branch=main");
    await git("add", ".");
    await git("-c", "commit.gpgsign=false", "commit", "--quiet", "--message", "Begin the sample");
    return [name, pathToFileURL(folder).href];
  });
  return Object.fromEntries(await Promise.all(urls));
}

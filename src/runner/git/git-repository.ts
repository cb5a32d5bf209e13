import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gitFolderOf, removeAllButData } from "./git-folder.ts";
import { git } from "./git-run.ts";
import type { GitTools } from "./git-tools.ts";

/** This module writes git's files without a git process; gitrepository-layout and git-config document them. */

/**
 * Turns a folder into a repository without settings. An existing repository comes from a prebuild, whose commands
 * could have set anything. Only its objects, refs and index stay, so none of its settings apply while a credential is
 * in use.
 *
 * @param branch the branch of HEAD
 */
export async function initRepository(folder: string, branch: string): Promise<void> {
  const gitFolder = gitFolderOf(folder);
  await mkdir(folder, { recursive: true });
  await removeAllButData(gitFolder);
  for (const part of ["objects/pack", "refs/heads", "refs/tags"]) {
    await mkdir(join(gitFolder, part), { recursive: true });
  }
  await writeFile(join(gitFolder, "HEAD"), `ref: refs/heads/${branch}\n`);
}

/** The settings of a repository. */
export interface RepositorySettings {
  /** The address of its remote. */
  readonly origin: string;
  /** The address of the remote that it was forked from; undefined for none. */
  readonly upstream: string | undefined;
  /** The branch that tracks the remote's branch of the same name; undefined for none. */
  readonly following: string | undefined;
  /** True for a copy of a repository and its files, whose index matches files by size and time alone. */
  readonly isCopy: boolean;
}

/** Writes the settings of a repository. */
export async function writeSettings(
  tools: GitTools,
  folder: string,
  { origin, upstream, following, isCopy }: RepositorySettings,
): Promise<void> {
  const lines = [await coreSettings(tools)];
  if (isCopy) lines.push("\ttrustctime = false", "\tcheckStat = minimal");
  lines.push(...remoteSettings("origin", origin));
  if (upstream !== undefined) lines.push(...remoteSettings("upstream", upstream));
  if (following !== undefined) {
    const merge = quoted(`refs/heads/${following}`);
    lines.push(`[branch ${quoted(following)}]`, "\tremote = origin", `\tmerge = ${merge}`);
  }
  await writeFile(join(gitFolderOf(folder), "config"), `${lines.join("\n")}\n`);
}

function remoteSettings(name: string, address: string): readonly string[] {
  const refs = `+refs/heads/*:refs/remotes/${name}/*`;
  return [`[remote "${name}"]`, `\turl = ${quoted(address)}`, `\tfetch = ${refs}`];
}

/** Quotes a value or name for git's settings. The text must not contain control characters. */
function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, "\\$&")}"`;
}

const CORE_SETTINGS = new WeakMap<GitTools, Promise<string>>();

/** Returns the settings that git gives a new repository on this machine; some depend on the file system. */
function coreSettings(tools: GitTools): Promise<string> {
  const known = CORE_SETTINGS.get(tools);
  if (known) return known;
  const settings = makeCoreSettings(tools);
  CORE_SETTINGS.set(tools, settings);
  settings.catch(() => CORE_SETTINGS.delete(tools));
  return settings;
}

async function makeCoreSettings(tools: GitTools): Promise<string> {
  const folder = await mkdtemp(join(tools.scratch, "init-"));
  try {
    const repository = { gitFolder: gitFolderOf(folder), tree: folder };
    await git(tools, ["init", "--quiet", "--template="], { repository });
    return (await readFile(join(repository.gitFolder, "config"), "utf8")).trimEnd();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

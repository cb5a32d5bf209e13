import { existsSync } from "node:fs";
import { readFile, realpath, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { hasState } from "../protocol/runner-state.ts";

/** In a folder of workspaces: the runner that it belongs to. */
const FILE = "owner.json";

interface Owner {
  /** Real path of the folder that this was written into: a copy of the folder belongs to nobody yet. */
  readonly folder: string;
  /** Real path of the runner's state folder. */
  readonly stateDir: string;
}

/**
 * Returns the state folder of the other runner that a folder of workspaces
 * belongs to; undefined where it belongs to this runner or to nobody. A runner
 * whose state folder was moved or removed owns nothing any more.
 *
 * @param stateDir of this runner; is there
 */
export async function otherOwner(folder: string, stateDir: string): Promise<string | undefined> {
  const owner = await readOwner(folder);
  if (owner.stateDir === undefined || owner.stateDir === (await realpath(stateDir))) return undefined;
  if (owner.folder !== (await realpath(folder))) return undefined;
  return hasState(owner.stateDir) ? owner.stateDir : undefined;
}

/** Makes a runner the owner of a folder of workspaces, if that is there. */
export async function claimWorkDir(folder: string, stateDir: string): Promise<void> {
  if (!existsSync(folder)) return;
  const owner: Owner = { folder: await realpath(folder), stateDir: await realpath(stateDir) };
  await replaceFile(ownerFile(folder), owner);
}

/** Returns where the owner of a folder of workspaces is recorded. */
export function ownerFile(folder: string): string {
  return join(folder, FILE);
}

/** Writes a JSON file whole or not at all. */
export async function replaceFile(file: string, content: unknown): Promise<void> {
  await writeFile(`${file}.draft`, `${JSON.stringify(content)}\n`, { mode: 0o600 });
  await rename(`${file}.draft`, file);
}

/** Empty where there is no owner, or where what a crash left is no JSON. */
async function readOwner(folder: string): Promise<Partial<Owner>> {
  try {
    return { ...JSON.parse(await readFile(ownerFile(folder), "utf8")) };
  } catch {
    return {};
  }
}

import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, open, readFile, realpath, rename } from "node:fs/promises";
import { join } from "node:path";
import { RunnerError } from "./runner-error.ts";

/** The stored facts about a runner's registration. */
export interface RunnerState {
  /** The server that it is registered at, as the settings name it. */
  readonly server: string;
  readonly runnerId: string;
  /** The token, a secret: only the file's owner can read it. */
  readonly token: string;
  /** The runner's instance: that of this folder, wherever its program is restarted. */
  readonly instance: RunnerInstance;
}

/** An instance of a runner, as the service knows it. */
export interface RunnerInstance {
  /** A UUID. */
  readonly id: string;
  /** The real path of the state folder that it was made for: a copy of the folder is another instance. */
  readonly folder: string;
}

const FILE = "runner.json";

/** Returns whether a runner has registered with this folder. */
export function hasState(folder: string): boolean {
  return existsSync(join(folder, FILE));
}

/**
 * Reads the state; undefined for a runner that has not registered yet. A folder of an earlier release, and a copy of a
 * folder, gets an instance of its own.
 *
 * @throws RunnerError when the file cannot be used
 */
export async function readState(folder: string): Promise<RunnerState | undefined> {
  const file = join(folder, FILE);
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    throw new RunnerError(`the state of the runner cannot be read: ${message}`);
  }
  const { server, runnerId, token, instance } = parsed(text);
  if (typeof server === "string" && typeof runnerId === "string" && typeof token === "string") {
    const registered = { server, runnerId, token };
    if (await isOfFolder(instance, folder)) return { ...registered, instance: instance as RunnerInstance };
    const state = { ...registered, instance: await newInstance(folder) };
    await writeState(folder, state);
    return state;
  }
  throw new RunnerError(`${file} is damaged: remove it and register the runner again`);
}

/** Returns a new instance for a state folder, which is created. */
export async function newInstance(folder: string): Promise<RunnerInstance> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return { id: randomUUID(), folder: await realpath(folder) };
}

async function isOfFolder(instance: unknown, folder: string): Promise<boolean> {
  const known = instance as Partial<RunnerInstance> | undefined;
  return typeof known?.id === "string" && known.folder === (await realpath(folder));
}

/** Writes the file atomically, so that it is complete after a crash; the folder is created. */
export async function writeState(folder: string, state: RunnerState): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const draft = join(folder, `${FILE}.draft`);
  const handle = await open(draft, "w", 0o600);
  try {
    await handle.chmod(0o600);
    await handle.writeFile(`${JSON.stringify(state)}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(draft, join(folder, FILE));
}

/** Returns the error without the file's text, which contains a token. */
function parsed(text: string): Partial<Record<keyof RunnerState, unknown>> {
  try {
    return { ...JSON.parse(text) };
  } catch {
    return {};
  }
}

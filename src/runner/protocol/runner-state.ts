import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, open, readFile, realpath, rename } from "node:fs/promises";
import { join } from "node:path";
import { RunnerError } from "./runner-error.ts";

/** A runner's stored registration. */
export interface RunnerState {
  /** The server of the registration, as named in the settings. */
  readonly server: string;
  readonly runnerId: string;
  /** The token, a secret. Only the file's owner can read it. */
  readonly token: string;
  /** The runner's instance, which belongs to this folder and survives restarts. */
  readonly instance: RunnerInstance;
}

/** An instance of a runner, as the service knows it. */
export interface RunnerInstance {
  /** A UUID. */
  readonly id: string;
  /** The real path of the state folder of this instance: a copy of the folder is another instance. */
  readonly folder: string;
}

const FILE = "runner.json";

/** Returns whether the folder holds a runner's registration. */
export function hasState(folder: string): boolean {
  return existsSync(join(folder, FILE));
}

/**
 * Reads the state; undefined for a runner that has not registered yet. Creates a new instance for a folder of an
 * earlier release and for a copy of a folder.
 *
 * @throws RunnerError when the file is unusable
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

/** Returns a new instance for a state folder, and creates the folder. */
export async function newInstance(folder: string): Promise<RunnerInstance> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return { id: randomUUID(), folder: await realpath(folder) };
}

async function isOfFolder(instance: unknown, folder: string): Promise<boolean> {
  const known = instance as Partial<RunnerInstance> | undefined;
  return typeof known?.id === "string" && known.folder === (await realpath(folder));
}

/** Writes the file atomically, so that it is complete after a crash. Creates the folder. */
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

/** Parses the file; its error omits the file's text, which contains a token. */
function parsed(text: string): Partial<Record<keyof RunnerState, unknown>> {
  try {
    return { ...JSON.parse(text) };
  } catch {
    return {};
  }
}

import { existsSync } from "node:fs";
import { mkdir, open, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { RunnerError } from "./runner-error.ts";

/** The stored facts about a runner's registration. */
export interface RunnerState {
  /** The server that it is registered at, as the settings name it. */
  readonly server: string;
  readonly runnerId: string;
  /** The token, a secret: only the file's owner can read it. */
  readonly token: string;
}

const FILE = "runner.json";

/** Returns whether a runner has registered with this folder. */
export function hasState(folder: string): boolean {
  return existsSync(join(folder, FILE));
}

/**
 * Reads the state; undefined for a runner that has not registered yet.
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
  const { server, runnerId, token } = parsed(text);
  if (typeof server === "string" && typeof runnerId === "string" && typeof token === "string") {
    return { server, runnerId, token };
  }
  throw new RunnerError(`${file} is damaged: remove it and register the runner again`);
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

import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Environment } from "../../config/settings.ts";

/** Where to show a text. */
export interface PagedOutput {
  readonly env: Environment;
  readonly isTerminal: boolean;
  print(text: string): void;
  /** Ignores interrupts. @returns the function that restores them */
  readonly ignoreInterrupts?: (() => () => void) | undefined;
}

/** The default of LESS, as in git: less exits if one screen is enough, and shows colours. */
const LESS = "FRX";

/**
 * Shows a text in a pager at a terminal, like git: CHARTROOM_PAGER, GIT_PAGER, PAGER, or less. Prints it directly
 * when the pager is empty or cat, or the output is not a terminal.
 */
export async function showPaged(
  text: string,
  { env, isTerminal, print, ignoreInterrupts }: PagedOutput,
): Promise<void> {
  const pager = env.CHARTROOM_PAGER ?? env.GIT_PAGER ?? env.PAGER ?? "less";
  if (!isTerminal || text === "" || pager === "" || pager === "cat") return print(text);
  // Use a shell because the variable may contain arguments.
  const child = spawn("/bin/sh", ["-c", pager], {
    stdio: ["pipe", "inherit", "inherit"],
    env: { LESS, ...env },
  });
  // The user may leave the pager before it has read everything.
  child.stdin.on("error", () => undefined);
  const ended = once(child, "close");
  // Pagers use an interrupt to stop a search; this process must not exit and leave the pager alone with the terminal.
  const heed = ignoreInterrupts?.();
  child.stdin.end(text);
  const [code] = await ended.finally(heed);
  // The shell did not find the program.
  if (code === 127) print(text);
}

/** Returns whether to colour a text. */
export function hasColours({ env, isTerminal }: Pick<PagedOutput, "env" | "isTerminal">): boolean {
  return isTerminal && !env.NO_COLOR && env.TERM !== "dumb";
}

import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Environment } from "../../config/settings.ts";

/** The place where a text is shown. */
export interface PagedOutput {
  readonly env: Environment;
  readonly isTerminal: boolean;
  print(text: string): void;
  /** Has interrupts end nothing. @returns the function that ends that */
  readonly ignoreInterrupts?: (() => () => void) | undefined;
}

/** The options of the usual pager unless LESS says otherwise, as git has it: it ends where one screen is enough, and shows colours. */
const LESS = "FRX";

/**
 * Shows a text by a pager on a terminal, as git does: that of CHARTROOM_PAGER, GIT_PAGER or PAGER, or less. An empty
 * one, or cat, shows it as it is, and so does what is no terminal.
 */
export async function showPaged(
  text: string,
  { env, isTerminal, print, ignoreInterrupts }: PagedOutput,
): Promise<void> {
  const pager = env.CHARTROOM_PAGER ?? env.GIT_PAGER ?? env.PAGER ?? "less";
  if (!isTerminal || text === "" || pager === "" || pager === "cat") return print(text);
  // By a shell, since the variable may hold arguments.
  const child = spawn("/bin/sh", ["-c", pager], {
    stdio: ["pipe", "inherit", "inherit"],
    env: { LESS, ...env },
  });
  // The pager may be left before it has read everything.
  child.stdin.on("error", () => undefined);
  const ended = once(child, "close");
  // Pagers take it to stop a search; a process that waits for one must not leave it alone with the terminal.
  const heed = ignoreInterrupts?.();
  child.stdin.end(text);
  const [code] = await ended.finally(heed);
  // The shell has found no such program.
  if (code === 127) print(text);
}

/** Returns whether a text is coloured there. */
export function hasColours({ env, isTerminal }: Pick<PagedOutput, "env" | "isTerminal">): boolean {
  return isTerminal && !env.NO_COLOR && env.TERM !== "dumb";
}

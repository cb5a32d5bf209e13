import { execFileSync } from "node:child_process";
import { closeSync, constants, existsSync, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "./server.ts";
import { until } from "./until.ts";

/** Many commands that run at once reach a gate slowly on a busy machine. */
const REACH_TIMEOUT_MS = 240_000;

/** Points in the commands of a workflow where they block until the test lets them continue. */
export interface Gate {
  /** Returns shell text that blocks while the gate is closed for a name. The name is shell text too. */
  wait(name: string): string;
  /** Closes the gate for these names, which consist of letters, digits and dashes. */
  close(...names: string[]): void;
  /** Opens the gate for these names: blocked commands continue, and later ones do not block. */
  open(...names: string[]): void;
  /** Returns whether a command has blocked at this name. */
  wasReached(name: string): boolean;
  /** Resolves when a command has blocked at each of these names. */
  reached(...names: string[]): Promise<void>;
}

/**
 * Creates a gate of files that the test and the commands share: a closed gate is a named pipe that
 * commands read from.
 */
export function createGate(): Gate {
  const folder = temporaryFolder();
  const pipe = (name: string) => join(folder, name);
  const wasReached = (name: string) => existsSync(`${pipe(name)}.reached`);
  return {
    wait: (name) =>
      `pipe='${folder}/'${name}; if [ -p "$pipe" ]; then : > "$pipe.reached"; cat "$pipe" || :; fi`,
    close(...names) {
      execFileSync("mkfifo", names.map(pipe));
    },
    open(...names) {
      for (const name of names) {
        // Kept open until its name is removed, so that a command that reads it, or is about to, finds its
        // end.
        const held = openSync(pipe(name), constants.O_RDWR | constants.O_NONBLOCK);
        rmSync(pipe(name));
        closeSync(held);
      }
    },
    wasReached,
    async reached(...names) {
      await until(
        () => names.filter((name) => !wasReached(name)),
        (missing) => missing.length === 0,
        REACH_TIMEOUT_MS,
      );
    },
  };
}

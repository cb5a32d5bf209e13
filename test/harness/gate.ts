import { execFileSync } from "node:child_process";
import { closeSync, constants, existsSync, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "./server.ts";
import { until } from "./until.ts";

/** Many commands at once take long to come to it on a machine that does other things, too. */
const LONGEST_WAY_MS = 100_000;

/** Places in the commands of a workflow where they wait until the test lets them go on. */
export interface Gate {
  /** Shell text that goes on at once unless the gate is closed for the name that this shell text says. */
  wait(name: string): string;
  /** From now on whoever has this name waits, which is of letters, digits and dashes. */
  close(...names: string[]): void;
  /** Lets them go on, those that come later too. */
  open(...names: string[]): void;
  /** Whether somebody has come to it, and waits unless it was opened since. */
  wasReached(name: string): boolean;
  /** Resolves when somebody waits for each of these. */
  reached(...names: string[]): Promise<void>;
}

/** By files that test and commands both see: a closed gate is a pipe that commands read from. */
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
        // Held open until its name is gone: whoever reads it, or is about to, then finds its end.
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
        LONGEST_WAY_MS,
      );
    },
  };
}

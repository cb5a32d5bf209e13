import type { ChildProcess } from "node:child_process";
import type { Command } from "./command.ts";

/** A command as it is started inside its isolation. */
export interface Enclosure {
  /** The path of the program that isolates it. */
  readonly program: string;
  readonly args: readonly string[];
  /** The environment of that program; nothing in it comes from the work. */
  readonly environment: Readonly<Record<string, string>>;
  /** The descriptors from 3 on. */
  readonly descriptors: readonly ("pipe" | "ignore" | number)[];
  /** Takes the started process, whose pipes are those of `descriptors`. */
  started(child: ChildProcess): void;
  /** Ends everything in it, first gracefully and then by force; resolves when no process is left. */
  end(groupId: number, graceMs: number): Promise<void>;
  /** Returns why the command was not started in it; undefined when it was started. */
  problem(): Promise<string | undefined>;
  /** Closes its files; called once, whether or not the command was started. */
  close(): void;
}

/**
 * Puts a command into an enclosure.
 *
 * @throws WorkFailure command_not_started
 */
export type Enclose = (command: Command) => Promise<Enclosure>;

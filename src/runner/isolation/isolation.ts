import type { WorkNetwork } from "../egress/work-network.ts";
import type { RunCommand } from "../process/command.ts";
import type { Workspace } from "../steps/workspace.ts";

/** The classes of isolation, the strongest first. */
export type IsolationName = "bubblewrap" | "none";

/**
 * A class of isolation: how a runner keeps in what workflows and agents run. Its own programs, such as its git, are
 * run beside it.
 */
export interface Isolation {
  readonly name: IsolationName;
  /** The id of the user and group of the work; undefined for those of the runner. */
  readonly user: number | undefined;
  /**
   * Lets work into its workspace, whose files become its own, and returns the function that runs its commands there.
   *
   * @param readable files and folders of the runner that it may read beside its workspace, those of them that exist
   * @param network its way out; none when absent
   */
  enter(workspace: Workspace, readable: readonly string[], network?: WorkNetwork): Promise<RunCommand>;
  /** Gives files that the runner has written into a workspace to the work in it. */
  handOver(paths: readonly string[]): Promise<void>;
}

/** Returns the class that keeps nothing in: commands do what the runner's user may. */
export function noIsolation(run: RunCommand): Isolation {
  return { name: "none", user: undefined, enter: async () => run, handOver: async () => undefined };
}

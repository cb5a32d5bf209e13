import type { WorkNetwork } from "../egress/work-network.ts";
import type { Command, CommandResult, RunCommand } from "../process/command.ts";
import type { Workspace } from "../steps/workspace.ts";
import type { PathRules } from "./path-rules.ts";

/** The isolation classes, strongest first. */
export type IsolationName = "bubblewrap" | "container" | "none";

/** Rules for work that enters a workspace. */
export interface EntryOptions {
  /** Its network; none when absent. */
  readonly network?: WorkNetwork | undefined;
  /** The rules about files; none when absent. */
  readonly rules?: PathRules | undefined;
  /** Its image, for a class that has images; the operator's when empty or absent. */
  readonly image?: string | undefined;
}

/** The facts that decide the image of an environment. */
export interface ImageRequest {
  readonly workspace: Workspace;
  /** The folder of its first repository. */
  readonly repository: string;
  /** The path of the repository's devcontainer file; empty for the usual places. */
  readonly devcontainerFile: string;
  /** The image that its organization names; empty for none. */
  readonly organizationImage: string;
  /** True if its organization, or the fork that it belongs to, restricts what it may reach. */
  readonly isNarrowed: boolean;
  readonly signal: AbortSignal;
}

/** The files that a call of git works on. */
export interface GitPlace {
  /** Files and folders that it may change. The sandbox's user becomes their owner. */
  readonly writable: readonly string[];
  readonly readable: readonly string[];
}

/**
 * Runs git in its own sandbox, in which only git and the programs it starts run. The sandbox shows the system's
 * folders and the call's place. HOME and /tmp are new. Git runs in HOME when the sandbox does not show the command's
 * folder.
 */
export type RunGitApart = (place: GitPlace, command: Command) => Promise<CommandResult>;

/**
 * An isolation class: how a runner confines workflows and agents. The runner's own programs, such as its git, run
 * outside it.
 */
export interface Isolation {
  readonly name: IsolationName;
  /** The user and group id of the work; undefined for the runner's own. */
  readonly user: number | undefined;
  /**
   * Lets work into its workspace, makes it the owner of the files, and returns the function that runs its commands
   * there.
   *
   * @param readable files and folders of the runner that it may read besides its workspace, if they exist
   * @throws WorkFailure policy_unsupported for rules that it cannot enforce
   */
  enter(workspace: Workspace, readable: readonly string[], options?: EntryOptions): Promise<RunCommand>;
  /**
   * Returns the image of an environment before any of its work has run; empty for the operator's image. Absent when
   * the class has no images.
   *
   * @throws WorkFailure
   */
  readonly imageOf?: (request: ImageRequest) => Promise<string>;
  /** True if it enforces rules about files. */
  readonly keepsRules: boolean;
  /** Makes the work in a workspace the owner of files that the runner has written there. */
  chown(paths: readonly string[]): Promise<void>;
  /** Runs git calls that reach a remote; absent when nothing can isolate them. */
  readonly runGit?: RunGitApart;
}

/** Returns the class without isolation: commands may do everything that the runner's user may. */
export function noIsolation(run: RunCommand): Isolation {
  return {
    name: "none",
    user: undefined,
    keepsRules: false,
    enter: async () => run,
    chown: async () => undefined,
  };
}

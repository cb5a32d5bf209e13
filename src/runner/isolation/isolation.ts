import type { WorkNetwork } from "../egress/work-network.ts";
import type { Command, CommandResult, RunCommand } from "../process/command.ts";
import type { Workspace } from "../steps/workspace.ts";
import type { PathRules } from "./path-rules.ts";

/** The classes of isolation, the strongest first. */
export type IsolationName = "bubblewrap" | "container" | "none";

/** Rules for the work that enters a workspace. */
export interface EntryOptions {
  /** Its way out; none when absent. */
  readonly network?: WorkNetwork | undefined;
  /** The rules about files; none when absent. */
  readonly rules?: PathRules | undefined;
  /** The image that it is to run in, where the class has images; that of the runner's operator when empty or absent. */
  readonly image?: string | undefined;
}

/** Facts that decide on the image of an environment. */
export interface ImageRequest {
  readonly workspace: Workspace;
  /** The folder of its first repository. */
  readonly repository: string;
  /** The path of the repository's devcontainer file; empty for the usual places. */
  readonly devcontainerFile: string;
  /** The image that its organization names; empty for none. */
  readonly organizationImage: string;
  /** True where its organization, or the fork that it is of, says what it may reach. */
  readonly isNarrowed: boolean;
  readonly signal: AbortSignal;
}

/** The files that a call of git works on. */
export interface GitPlace {
  /** Files and folders that it may change; they become those of the user of the sandbox. */
  readonly writable: readonly string[];
  readonly readable: readonly string[];
}

/**
 * Runs git in a sandbox of its own, in which nothing runs but git and what it starts. It sees the system's folders and
 * its place; its HOME and its /tmp are new, and its folder is its HOME where it does not see the one that is named.
 */
export type RunGitApart = (place: GitPlace, command: Command) => Promise<CommandResult>;

/**
 * A class of isolation: how a runner keeps in what workflows and agents run. Its own programs, such as its git, are
 * run outside it.
 */
export interface Isolation {
  readonly name: IsolationName;
  /** The id of the user and group of the work; undefined for those of the runner. */
  readonly user: number | undefined;
  /**
   * Lets work into its workspace, whose files become its own, and returns the function that runs its commands there.
   *
   * @param readable files and folders of the runner that it may read in addition to its workspace, as far as they exist
   * @throws WorkFailure policy_unsupported for rules that it cannot keep
   */
  enter(workspace: Workspace, readable: readonly string[], options?: EntryOptions): Promise<RunCommand>;
  /**
   * Returns the image of an environment before anything of the work has run in it; empty for that of the runner's
   * operator. Absent where the class has no images.
   *
   * @throws WorkFailure
   */
  readonly imageOf?: (request: ImageRequest) => Promise<string>;
  /** True if it keeps rules about files. */
  readonly keepsRules: boolean;
  /** Gives files that the runner has written into a workspace to the work in it. */
  handOver(paths: readonly string[]): Promise<void>;
  /** Runs git that reaches a remote; absent where nothing can keep it apart. */
  readonly runGit?: RunGitApart;
}

/** Returns the class that keeps nothing in: commands do what the runner's user may. */
export function noIsolation(run: RunCommand): Isolation {
  return {
    name: "none",
    user: undefined,
    keepsRules: false,
    enter: async () => run,
    handOver: async () => undefined,
  };
}

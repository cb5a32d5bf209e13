import type { Command } from "../process/command.ts";
import type { Workspace } from "../steps/workspace.ts";
import type { CoveredPath } from "./covered-paths.ts";
import { HOME_LINK } from "./etc-folder.ts";
import { realPathOf, type SystemView } from "./system-view.ts";

/** Descriptors of bubblewrap: its arguments, the filter of system calls, and what it tells. */
export const ARGUMENTS_DESCRIPTOR = 3;
export const FILTER_DESCRIPTOR = 4;
export const STATUS_DESCRIPTOR = 5;

/** The parts of a sandbox that are the same for all commands of a piece of work. */
export interface SandboxParts {
  readonly view: SystemView;
  readonly workspace: Workspace;
  /** The folder of the environment's /tmp. */
  readonly tmp: string;
  /** Files and folders of the runner that the work may read. */
  readonly readable: readonly string[];
  /** Files and folders of the runner that the work may change, in addition to its workspace; none when absent. */
  readonly writable?: readonly string[];
  /** The folder that is its /etc. */
  readonly etc: string;
  /** True for commands that keep the network that they are started in, such as one that was made for their work. */
  readonly hasNetwork: boolean;
  /** The paths that rules cover; none when absent. */
  readonly covers?: readonly CoveredPath[];
  /** A file that nobody may use, which covers files. */
  readonly deniedFile: string;
}

/** The size of /dev/shm, which is memory. */
const SHARED_MEMORY_BYTES = 512 * 2 ** 20;

/**
 * Returns the arguments of the sandbox of a command, but the command itself.
 *
 * @param sourceOf where a path of the runner is found by bubblewrap
 */
export function sandboxArguments(
  { view, workspace, tmp, readable, writable = [], etc, covers = [], deniedFile, hasNetwork }: SandboxParts,
  { folder, environment }: Pick<Command, "folder" | "environment">,
  sourceOf: (path: string) => string,
): string[] {
  const { tree, home } = workspace;
  return [
    ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup"],
    hasNetwork ? [] : ["--unshare-net"],
    // The terminal of the runner, if it has one, gets no input from work.
    ["--die-with-parent", "--new-session"],
    ["--seccomp", String(FILTER_DESCRIPTOR), "--json-status-fd", String(STATUS_DESCRIPTOR)],
    ...view.links.map(({ path, target }) => ["--symlink", target, path]),
    ["--ro-bind", sourceOf(etc), "/etc"],
    ...view.system.map((path) => ["--ro-bind", path, path]),
    ...view.hidden.map(({ path, isFolder }) =>
      isFolder ? ["--perms", "0000", "--tmpfs", path] : ["--ro-bind", "/dev/null", path],
    ),
    ["--proc", "/proc", "--dev", "/dev"],
    ["--perms", "1777", "--size", String(SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"],
    ["--bind", sourceOf(tmp), "/tmp", "--bind", sourceOf(tmp), "/var/tmp"],
    // Those that the operator names may be links.
    ...view.readable.map((path) => ["--ro-bind", sourceOf(realPathOf(path)), path]),
    ...readable.map((path) => ["--ro-bind", sourceOf(path), path]),
    ["--bind", sourceOf(tree), tree, "--bind", sourceOf(home), home, "--symlink", home, HOME_LINK],
    ...writable.map((path) => ["--bind", sourceOf(path), path]),
    ...covers.map(({ path, by }) => {
      if (by === "empty folder") return ["--perms", "0000", "--tmpfs", path, "--remount-ro", path];
      if (by === "empty file") return ["--ro-bind", sourceOf(deniedFile), path];
      return [by.isWritable ? "--bind" : "--ro-bind", sourceOf(by.source), path];
    }),
    ["--remount-ro", "/", "--chdir", folder, "--clearenv"],
    ...Object.entries(environment).map(([name, value]) => ["--setenv", name, value]),
  ].flat();
}

/** Returns the paths of the runner that a sandbox is made of, which bubblewrap must be able to enter. */
export function sourcesOf(parts: SandboxParts): readonly string[] {
  const { view, workspace, tmp, readable, writable = [], etc, covers = [], deniedFile } = parts;
  const { tree, home } = workspace;
  const covering = covers.map(({ by }) => (typeof by === "string" ? deniedFile : by.source));
  const named = view.readable.map(realPathOf);
  return [...new Set([tree, home, tmp, etc, ...named, ...readable, ...writable, ...covering])];
}

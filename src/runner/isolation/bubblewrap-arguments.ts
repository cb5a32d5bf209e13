import type { Command } from "../process/command.ts";
import type { Workspace } from "../steps/workspace.ts";
import type { CoveredPath } from "./covered-paths.ts";
import { HOME_LINK } from "./etc-folder.ts";
import { realPathOf, type SystemView } from "./system-view.ts";

/** Descriptors of bubblewrap: its arguments, the system call filter, and its status output. */
export const ARGUMENTS_DESCRIPTOR = 3;
const FILTER_DESCRIPTOR = 4;
export const STATUS_DESCRIPTOR = 5;

/** The parts of a sandbox that all commands of a piece of work share. */
export interface SandboxParts {
  readonly view: SystemView;
  readonly workspace: Workspace;
  /** The folder of the environment's /tmp. */
  readonly tmp: string;
  /** Files and folders of the runner that the work may read. */
  readonly readable: readonly string[];
  /** Files and folders of the runner that the work may change besides its workspace; none when absent. */
  readonly writable?: readonly string[];
  /** The folder mounted as /etc. */
  readonly etc: string;
  /** True for commands that keep the network they start in, such as one made for their work. */
  readonly hasNetwork: boolean;
  /** The paths that the policies' rules cover; none when absent. */
  readonly covers?: readonly CoveredPath[];
  /** An unusable file that is mounted over denied files. */
  readonly deniedFile: string;
}

/** The size of /dev/shm, which uses memory. */
const SHARED_MEMORY_BYTES = 512 * 2 ** 20;

/**
 * Returns the arguments for a command's sandbox, without the command itself.
 *
 * @param sourceOf where bubblewrap finds a path of the runner
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
    // Work must not type into the runner's terminal.
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
    // The operator may name links.
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

/** Returns the paths of the runner that a sandbox mounts. Bubblewrap must be able to access them. */
export function sourcesOf(parts: SandboxParts): readonly string[] {
  const { view, workspace, tmp, readable, writable = [], etc, covers = [], deniedFile } = parts;
  const { tree, home } = workspace;
  const covering = covers.map(({ by }) => (typeof by === "string" ? deniedFile : by.source));
  const named = view.readable.map(realPathOf);
  return [...new Set([tree, home, tmp, etc, ...named, ...readable, ...writable, ...covering])];
}

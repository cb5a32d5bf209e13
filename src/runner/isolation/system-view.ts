import { existsSync, lstatSync, readlinkSync, realpathSync } from "node:fs";
import { relative, resolve } from "node:path";
import { RunnerError } from "../protocol/runner-error.ts";

/** The machine's paths that all isolated work sees, read-only. */
export interface SystemView {
  /** Links in the root folder, such as /bin. */
  readonly links: readonly { readonly path: string; readonly target: string }[];
  /** Files and folders, mounted at their own paths, that everybody may access. */
  readonly system: readonly string[];
  /** Files and folders, mounted at their own paths, that other users need not be able to access. */
  readonly readable: readonly string[];
  /** Folders and files inside the above that stay hidden. */
  readonly hidden: readonly { readonly path: string; readonly isFolder: boolean }[];
}

const ROOT_FOLDERS = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/** Files of /etc that change while the machine runs; work sees copies of the rest, made at the start. */
const LIVE = ["/etc/hosts", "/etc/resolv.conf"];

export interface SystemViewOptions {
  /** Paths that the operator names. */
  readonly readable: readonly string[];
  /** Files and folders that no work may see, anywhere. */
  readonly hidden: readonly string[];
}

/**
 * Finds what work may see of this machine.
 *
 * @throws RunnerError when a path named by the operator does not exist or would show something hidden
 */
export function readSystemView({ readable, hidden }: SystemViewOptions): SystemView {
  const hiddenPaths = hidden.map(realPathOf);
  const roots = ROOT_FOLDERS.filter((each) => existsSync(each));
  const links = roots.filter(isLink).map((each) => ({ path: each, target: readlinkSync(each) }));
  const system = [...roots.filter((each) => !isLink(each)), ...LIVE.filter((each) => existsSync(each))];
  return {
    links,
    system,
    readable: readable.map((each) => checkedReadable(each, hiddenPaths)),
    hidden: hiddenPaths
      .filter((each) => existsSync(each) && system.some((one) => isInside(each, realPathOf(one))))
      .map((each) => ({ path: each, isFolder: lstatSync(each).isDirectory() })),
  };
}

/** Returns whether work sees a path of the machine. The path must have no symbolic links. */
export function isVisible({ system, readable }: SystemView, path: string): boolean {
  return [...system, ...readable].some((each) => isInside(path, realPathOf(each)));
}

function checkedReadable(path: string, hidden: readonly string[]): string {
  if (!existsSync(path)) throw new RunnerError(`--isolation-read names ${path}, which does not exist`);
  const conflict = hidden.find((each) => overlaps(realPathOf(path), each));
  if (conflict === undefined) return path;
  throw new RunnerError(
    `--isolation-read names ${path}, where work would see ${conflict}: name a folder without what no work may see`,
  );
}

function overlaps(one: string, other: string): boolean {
  return isInside(one, other) || isInside(other, one);
}

/** Returns whether a path is the folder or lies inside it. */
export function isInside(path: string, folder: string): boolean {
  const rest = relative(folder, path);
  return rest === "" || (rest !== ".." && !rest.startsWith("../"));
}

function isLink(path: string): boolean {
  return lstatSync(path).isSymbolicLink();
}

/** Returns the path without symbolic links, or unchanged when it does not exist. */
export function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}

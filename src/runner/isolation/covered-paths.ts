import { lstat, readlink, realpath } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { SAFELIST } from "../../domain/policy/policies.ts";
import { commandEnvironment, type Programs } from "../process/command.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import type { SandboxParts } from "./bubblewrap-arguments.ts";
import { HOME_LINK } from "./etc-folder.ts";
import type { PathRules } from "./path-rules.ts";
import { isInside, isVisible } from "./system-view.ts";

/** A path in a sandbox that something is mounted over. */
export interface CoveredPath {
  /** Its path in the sandbox, without symbolic links. */
  readonly path: string;
  /**
   * What is mounted over the path. `source` is the runner's own path of the same file or folder: it stays readable,
   * and with `isWritable` also writable, when it only has to stay in place.
   */
  readonly by: "empty file" | "empty folder" | { readonly source: string; readonly isWritable?: boolean };
}

type SandboxFolders = Pick<SandboxParts, "view" | "workspace" | "tmp" | "readable" | "etc">;

/**
 * Finds the existing paths that a sandbox must cover to enforce rules about files. Creates nothing where work can
 * write, because a link made by the work could redirect it.
 *
 * @throws WorkFailure policy_unsupported for a program that cannot be covered without covering others that everything
 *   needs
 */
export async function findCoveredPaths(
  programs: Programs,
  place: SandboxFolders,
  { executables, denied, readOnly }: PathRules,
): Promise<readonly CoveredPath[]> {
  const covers = new Map<string, CoveredPath>();
  const isCovered = (path: string) =>
    [...covers.values()].some((each) => typeof each.by === "string" && isInside(path, each.path));
  const add = (found: CoveredPath | undefined) => {
    for (const cover of found ? underAllNames(place, found) : [])
      if (!isCovered(cover.path)) covers.set(cover.path, cover);
  };
  for (const path of denied) add(await deniedPath(place, path));
  const names = executables.filter((each) => !each.includes("/"));
  const files = [
    ...executables.filter((each) => each.startsWith("/")),
    ...(await findPrograms(programs, place, names)),
  ];
  for (const file of new Set(files)) add(await deniedProgram(place, file));
  for (const path of readOnly) add(await readOnlyPath(place, path));
  return inOrder([...covers.values(), ...heldFolders(place, [...covers.values()])]);
}

/** The two names of the environment's /tmp. */
const TMP_NAMES = ["/tmp", "/var/tmp"];

function underAllNames({ workspace }: SandboxFolders, cover: CoveredPath): readonly CoveredPath[] {
  const isOwn = [workspace.tree, workspace.home].some((each) => isInside(cover.path, each));
  const name = TMP_NAMES.find((each) => isInside(cover.path, each));
  if (isOwn || name === undefined) return [cover];
  return TMP_NAMES.map((each) => ({ ...cover, path: each + cover.path.slice(name.length) }));
}

/**
 * Returns the folders above covers that work could rename. If work replaced one with a link, the next sandbox would
 * show, or cover, the link's target on the machine. A mount point cannot be replaced.
 */
function heldFolders(
  { workspace, tmp }: SandboxFolders,
  covers: readonly CoveredPath[],
): readonly CoveredPath[] {
  const roots = [
    ...[workspace.tree, workspace.home].map((path) => ({ path, source: path })),
    ...TMP_NAMES.map((path) => ({ path, source: tmp })),
  ];
  const held = new Map<string, CoveredPath>();
  for (const { path } of covers) {
    const root = roots.find((each) => isInside(path, each.path));
    for (let above = dirname(path); root && above !== root.path && isInside(above, root.path); ) {
      const by = { source: root.source + above.slice(root.path.length), isWritable: true };
      // Nothing can be renamed in a covered folder.
      if (!covers.some((each) => isInside(above, each.path))) held.set(above, { path: above, by });
      above = dirname(above);
    }
  }
  return [...held.values()];
}

/** Orders covers so that none hides another one inside it. Omits covers inside an empty folder, which need none. */
function inOrder(covers: readonly CoveredPath[]): readonly CoveredPath[] {
  const empty = covers.filter(({ by }) => by === "empty folder");
  return covers
    .filter(({ path }) => !empty.some((each) => each.path !== path && isInside(path, each.path)))
    .toSorted((one, other) => one.path.length - other.path.length);
}

/** Maximum number of links to follow in a row. */
const MAX_LINKS = 10;

/**
 * Returns where the runner finds a path of a sandbox, and the path without symbolic links; undefined when it does not
 * exist.
 */
async function locate(place: SandboxFolders, named: string, links = 0): Promise<Located | undefined> {
  const { view, workspace, tmp, readable, etc } = place;
  const folders = [workspace.tree, workspace.home];
  const path = isInside(named, HOME_LINK) ? workspace.home + named.slice(HOME_LINK.length) : named;
  const isOwn = folders.some((each) => isInside(path, each));
  const moved = [
    { folder: "/tmp", source: tmp, isWritable: true, applies: !isOwn },
    { folder: "/var/tmp", source: tmp, isWritable: true, applies: !isOwn },
    { folder: "/etc", source: etc, isWritable: false, applies: !view.system.includes(path) },
  ].find(({ folder, applies }) => applies && isInside(path, folder));
  if (moved) {
    const source = moved.source + path.slice(moved.folder.length);
    const found = await lstat(source).catch(() => undefined);
    if (!found || (moved.isWritable && !(await isReached(source, moved.source)))) return undefined;
    if (!found.isSymbolicLink()) return { ...moved, path, source };
    return links < MAX_LINKS
      ? locate(place, resolve(dirname(path), await readlink(source)), links + 1)
      : undefined;
  }
  const real = await realpath(path).catch(() => undefined);
  if (real === undefined) return undefined;
  for (const folder of folders) {
    const inFolder = await realpath(folder);
    if (isInside(real, inFolder)) return located(folder + real.slice(inFolder.length), true);
  }
  const isSeen = isVisible(view, real) || readable.some((each) => isInside(real, each));
  return isSeen ? located(real, false) : undefined;
}

/** Returns whether a path in a folder is reachable without a link made by the work. */
async function isReached(path: string, folder: string): Promise<boolean> {
  const [above, root] = await Promise.all([realpath(dirname(path)), realpath(folder)]);
  return path === folder || join(above, basename(path)) === root + path.slice(folder.length);
}

interface Located {
  readonly path: string;
  readonly source: string;
  /** True if work could change it. */
  readonly isWritable: boolean;
}

const located = (path: string, isWritable: boolean): Located => ({ path, source: path, isWritable });

/** The devices and folders that every sandbox has. */
const DEVICES = ["console", "full", "null", "ptmx", "pts", "random", "shm", "tty", "urandom", "zero"];

async function deniedPath(place: SandboxFolders, path: string): Promise<CoveredPath | undefined> {
  if (isInside(path, "/dev")) return deniedDevice(path);
  if (isInside(path, "/proc")) return deniedSetting(path);
  const found = await locate(place, path);
  if (!found) return undefined;
  const kind = await kindOf(found.source);
  return kind && { path: found.path, by: kind === "folder" ? "empty folder" : "empty file" };
}

function deniedDevice(path: string): CoveredPath | undefined {
  const [, , name = "", ...rest] = path.split("/");
  if (!DEVICES.includes(name) || rest.length > 0) return undefined;
  return { path, by: name === "pts" || name === "shm" ? "empty folder" : "empty file" };
}

async function deniedSetting(path: string): Promise<CoveredPath | undefined> {
  // A sandbox has its own processes.
  if (/^\/proc(\/(\d+|self|thread-self)(\/|$)|$)/.test(path)) return undefined;
  const kind = await kindOf(path);
  return kind && { path, by: kind === "folder" ? "empty folder" : "empty file" };
}

const NEEDED: ReadonlySet<string> = new Set(SAFELIST);

/** @throws WorkFailure policy_unsupported */
async function deniedProgram(place: SandboxFolders, file: string): Promise<CoveredPath | undefined> {
  const found = await locate(place, file);
  if (!found) return undefined;
  if (NEEDED.has(basename(found.path))) {
    if (NEEDED.has(basename(file))) return undefined;
    throw new WorkFailure(
      "policy_unsupported",
      `this runner cannot deny ${file} without ${found.path}, of which it is another name, and which everything needs`,
    );
  }
  if ((await kindOf(found.source)) !== "file") return undefined;
  return { path: found.path, by: "empty file" };
}

async function readOnlyPath(place: SandboxFolders, path: string): Promise<CoveredPath | undefined> {
  const found = await locate(place, path);
  if (!found?.isWritable) return undefined;
  return (await kindOf(found.source)) && { path: found.path, by: { source: found.source } };
}

/** Returns the kind of a path that is not a link. */
async function kindOf(path: string): Promise<"file" | "folder" | undefined> {
  const found = await lstat(path).catch(() => undefined);
  return found && (found.isDirectory() ? "folder" : "file");
}

/** Returns all programs with the given names in the folders of the machine that a sandbox shows. */
async function findPrograms(
  programs: Programs,
  { view, readable }: SandboxFolders,
  names: readonly string[],
): Promise<string[]> {
  if (names.length === 0) return [];
  const wanted = names
    .map(escapedName)
    .flatMap((name, index) => [...(index > 0 ? ["-o"] : []), "-name", name]);
  const roots = [...view.system, ...view.readable, ...readable];
  let text = "";
  await programs.run({
    program: "find",
    args: [...roots, "(", ...wanted, ")", "!", "-type", "d", "-print0"],
    folder: "/",
    environment: commandEnvironment(programs, "/"),
    onOutput: (bytes, stream) => {
      if (stream === "stdout") text += bytes.toString();
    },
  });
  return text.split("\0").filter((path) => path !== "");
}

/** Escapes a name as a pattern that matches only that name. */
function escapedName(name: string): string {
  return name.replace(/[*?[\]\\]/g, "\\$&");
}

import { lstat } from "node:fs/promises";
import { create } from "@bufbuild/protobuf";
import {
  type ChangeCounts,
  ChangeCountsSchema,
  type EnvironmentFileDiff,
  EnvironmentFileDiffSchema,
  EnvironmentFileDiff_Kind as Kind,
  EnvironmentFileDiff_PatchOmission as Omission,
} from "#gen/service/v1/environment_changes_pb.js";
import type { Secrets } from "../../domain/secrets.ts";
import { git } from "../git/git-run.ts";
import { diffWithIndex, pathsUnlikeIndex, type RawFileDiff } from "./tree-diff.ts";
import type { TreeRepository } from "./tree-repository.ts";
import {
  EMPTY_TREE,
  fileOf,
  hasContentOf,
  LARGE_BYTES,
  type LargeFile,
  type StagedTree,
} from "./tree-stage.ts";

/** The contract's maximum length of a patch, in characters (EnvironmentFileDiff.patch). */
const MAX_PATCH_CHARACTERS = 524_288;
/** The contract's maximum length of a path, in characters. */
const MAX_PATH_CHARACTERS = 16_384;
/** Maximum size of the patches that are read for a diff. This exceeds what is reported, since some are too long. */
const READ_BYTES = 8 * 1_024 * 1_024;

/** Maximum lag of a file system's clock, in milliseconds. */
const CLOCK_MS = 20;

/** A state of a working tree that a later one is compared with. */
export interface TreeState {
  readonly tree: string;
  readonly large: Readonly<Record<string, LargeFile>>;
}

/** Returns the state of a commit as it is checked out. */
export function checkedOutState(commit: string | undefined): TreeState {
  return { tree: commit ?? EMPTY_TREE, large: {} };
}

/** Returns whether a state is exactly that of the checked-out commit. */
export function isCheckedOutState(state: TreeState | undefined, commit: string | undefined): boolean {
  return state?.tree === checkedOutState(commit).tree && Object.keys(state.large).length === 0;
}

/**
 * Returns the files that differ between a state and the staged tree, sorted by path.
 * @param prefix is put before the paths: the folder of the repository with a slash, or nothing
 */
export async function compareTree(
  repository: TreeRepository,
  before: TreeState,
  now: StagedTree,
  { prefix, secrets }: { readonly prefix: string; readonly secrets: Pick<Secrets, "mask"> },
): Promise<EnvironmentFileDiff[]> {
  const raw = before.tree === now.tree ? [] : await diffWithIndex(repository, before.tree, READ_BYTES);
  const oldSizes = await sizesOf(repository, raw, now);
  const restored = await findRestored(repository, raw, now, oldSizes);
  const textOf = (latin1: string) => secrets.mask(Buffer.from(latin1, "latin1")).toString("utf8");
  const pathOf = (path: string) => cut(textOf(`${prefix}${path}`), MAX_PATH_CHARACTERS);
  const files: EnvironmentFileDiff[] = [];
  for (const each of raw) {
    // Large files are not in the index, so git lists them as deleted.
    if (each.status === "D" && now.large[each.path]) continue;
    const stat = await lstat(fileOf(repository.folder, each.path)).catch(() => undefined);
    const isTracked = each.status === "D" && stat && !stat.isDirectory();
    const isBinary = isTracked || each.lines === undefined;
    const patch = isBinary ? "" : each.patch === undefined ? undefined : textOf(each.patch);
    const sizeBytes = each.newMode === "" && !isTracked ? 0 : (stat?.size ?? 0);
    const isLarge = Math.max(sizeBytes, oldSizes.get(each.oldHash) ?? 0) > LARGE_BYTES;
    files.push(
      create(EnvironmentFileDiffSchema, {
        path: pathOf(each.path),
        oldPath: each.oldPath === "" ? "" : pathOf(each.oldPath),
        kind: isTracked ? Kind.CHANGED : kindOf(each),
        addedLines: BigInt(each.lines?.added ?? 0),
        deletedLines: BigInt(isTracked ? 0 : (each.lines?.deleted ?? 0)),
        sizeBytes: BigInt(sizeBytes),
        ...patchOf(patch, isBinary, isLarge),
        oldMode: each.oldMode,
        newMode: isTracked ? each.oldMode : each.newMode,
      }),
    );
  }
  const tracked = new Map(
    raw.filter(({ status }) => status === "D").map((each) => [each.path, each.oldMode]),
  );
  for (const path of new Set([...Object.keys(before.large), ...Object.keys(now.large)])) {
    const [was, is] = [before.large[path], now.large[path]];
    if (was?.stamp === is?.stamp || restored.has(path)) continue;
    const oldMode = was ? "100644" : (tracked.get(path) ?? "");
    // The file is small now and is already among the others.
    if (!is && (await exists(repository, path))) continue;
    files.push(largeFile(pathOf(path), oldMode, is));
  }
  for (const path of now.repositories) {
    const newMode = "160000";
    files.push(create(EnvironmentFileDiffSchema, { path: pathOf(path), kind: Kind.ADDED, newMode }));
  }
  return files.toSorted((one, other) => (one.path < other.path ? -1 : one.path > other.path ? 1 : 0));
}

/**
 * Returns whether a file that differs between a state and the staged tree was written or removed since a time.
 * Compares ctimes, which programs cannot set.
 * @param sinceMs milliseconds since 1970
 */
export async function isWrittenSince(
  repository: TreeRepository,
  before: TreeState,
  now: StagedTree,
  sinceMs: number,
): Promise<boolean> {
  const unlike = before.tree === now.tree ? [] : await pathsUnlikeIndex(repository, before.tree);
  for (const path of new Set([...unlike, ...Object.keys(before.large), ...Object.keys(now.large)])) {
    if ((await changedMs(repository.folder, path)) >= sinceMs - CLOCK_MS) return true;
  }
  return false;
}

/** Returns the ctime of a file or, if it is gone, of the nearest folder of its path that still exists. */
async function changedMs(folder: string, path: string): Promise<number> {
  for (let left = path; ; left = left.slice(0, Math.max(left.lastIndexOf("/"), 0))) {
    const stat = await lstat(fileOf(folder, left)).catch(() => undefined);
    if (stat) return stat.ctimeMs;
    if (left === "") return Number.POSITIVE_INFINITY;
  }
}

/** Returns the counts of files and lines by kind of change. */
export function countsOf(files: readonly EnvironmentFileDiff[]): ChangeCounts {
  const counts = create(ChangeCountsSchema);
  for (const { kind, addedLines, deletedLines } of files) {
    if (kind === Kind.ADDED) counts.addedFiles += 1;
    else if (kind === Kind.DELETED) counts.deletedFiles += 1;
    else if (kind === Kind.RENAMED) counts.renamedFiles += 1;
    else counts.changedFiles += 1;
    counts.addedLines += addedLines;
    counts.deletedLines += deletedLines;
  }
  return counts;
}

function largeFile(path: string, oldMode: string, is: LargeFile | undefined): EnvironmentFileDiff {
  const kind = is ? (oldMode === "" ? Kind.ADDED : Kind.CHANGED) : Kind.DELETED;
  const newMode = is ? oldMode || "100644" : "";
  return create(EnvironmentFileDiffSchema, {
    path,
    kind,
    sizeBytes: BigInt(is?.sizeBytes ?? 0),
    patchOmission: Omission.LARGE,
    oldMode,
    newMode,
  });
}

function patchOf(patch: string | undefined, isBinary: boolean, isLarge: boolean) {
  if (isBinary) return { patchOmission: isLarge ? Omission.LARGE : Omission.BINARY };
  if (patch === undefined) return { patchOmission: Omission.FULL };
  return patch.length > MAX_PATCH_CHARACTERS ? { patchOmission: Omission.LARGE } : { patch };
}

function kindOf({ status }: RawFileDiff): Kind {
  switch (status) {
    case "A":
      return Kind.ADDED;
    case "D":
      return Kind.DELETED;
    case "R":
      return Kind.RENAMED;
    default:
      return Kind.CHANGED;
  }
}

/** Returns the paths, in latin1, of the large files whose content is the same as before. */
async function findRestored(
  { folder }: TreeRepository,
  raw: readonly RawFileDiff[],
  { large }: StagedTree,
  oldSizes: ReadonlyMap<string, number>,
): Promise<ReadonlySet<string>> {
  const restored = new Set<string>();
  for (const { path, oldHash } of raw) {
    const is = large[path];
    if (is && oldSizes.get(oldHash) === is.sizeBytes && (await hasContentOf(folder, path, is, oldHash)))
      restored.add(path);
  }
  return restored;
}

/** Returns the previous sizes, by hash, of files that are large now or that git does not count lines of. */
async function sizesOf(
  { tools, call }: TreeRepository,
  raw: readonly RawFileDiff[],
  { large }: StagedTree,
): Promise<ReadonlyMap<string, number>> {
  const hashes = raw
    .filter(({ lines, path, oldMode }) => (!lines || large[path]) && oldMode !== "")
    .map(({ oldHash }) => oldHash);
  if (hashes.length === 0) return new Map();
  const input = hashes.map((hash) => `${hash}\n`).join("");
  const output = await git(tools, ["cat-file", "--batch-check=%(objectname) %(objectsize)"], {
    ...call,
    input,
  });
  return new Map(
    output.split("\n").map((line) => {
      const [hash = "", size = ""] = line.split(" ");
      return [hash, Number(size) || 0];
    }),
  );
}

async function exists({ folder }: TreeRepository, path: string): Promise<boolean> {
  return (await lstat(fileOf(folder, path)).catch(() => undefined)) !== undefined;
}

function cut(text: string, max: number): string {
  return text.length > max ? text.slice(0, max).toWellFormed() : text;
}

import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ReportEnvironmentChangesRequestSchema } from "#gen/runner/v1/environment_work_service_pb.js";
import {
  DiffBase,
  type EnvironmentFileDiff,
  EnvironmentFileDiff_PatchOmission as Omission,
  type RepositoryChangesSchema,
} from "#gen/service/v1/environment_changes_pb.js";
import type { Secrets } from "../../domain/secrets.ts";
import type { Checkout } from "../git/git-checkout.ts";
import { tryGit } from "../git/git-run.ts";
import type { GitTools } from "../git/git-tools.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import type { Workspace } from "../steps/workspace.ts";
import {
  checkedOutState,
  compareTree,
  countsOf,
  isCheckedOutState,
  isWrittenSince,
  type TreeState,
} from "./tree-changes.ts";
import {
  changesFolderOf,
  forgetRepository,
  type TreeRepository,
  withTreeRepository,
} from "./tree-repository.ts";
import { stageTree } from "./tree-stage.ts";
import { isUntouched } from "./tree-stamp.ts";

/** A workspace whose repositories are looked at. */
export interface WatchedWorkspace {
  readonly environmentId: string;
  readonly workspace: Workspace;
  readonly checkouts: readonly Checkout[];
  /** Masked in all that is reported. */
  readonly secrets: Secrets;
  /** Ids of the secrets that its work may leave in the tree; none when absent. */
  readonly secretIds?: readonly string[];
  /** True if the tree may hold secrets that are not masked, so that no patch is reported. */
  readonly hidesPatches?: boolean;
}

export type ChangesReport = MessageInitShape<typeof ReportEnvironmentChangesRequestSchema>;

/** The runner's memory of the turns in a workspace: a state of each repository, by its place. */
interface Turns {
  /** As the last turn found it; absent before the first turn. */
  readonly begin?: readonly (TreeState | undefined)[];
  /** As the last turn left it; absent while one goes on. */
  readonly end?: readonly (TreeState | undefined)[];
}

/** Maximum of the contract for the files of a diff (EnvironmentDiff.files). */
const MAX_FILES = 2_000;
/** Bytes of the patches and paths of each diff: a report has 4 MiB at most, in which each file has some more. */
const BASE_BYTES = 2_400_000;
const TURN_BYTES = 1_000_000;
const FILE_BYTES = 64;

/** Begins a turn in a workspace: what follows is compared with what the turn before has left. */
export async function beginTurn({ workspace }: Pick<WatchedWorkspace, "workspace">): Promise<void> {
  const { begin, end } = await readTurns(workspace);
  const next = end ?? begin;
  // Before the first turn there is nothing to write.
  if (next) await writeTurns(workspace, { begin: next });
}

/** Tells a look at the end of a turn from one during it. */
interface TurnEnd {
  readonly isEnd: boolean;
  /** Returns when the turn after it has begun, in milliseconds since 1970; undefined while none has. */
  readonly nextBeganMs?: () => number | undefined;
}

/** Returns what has changed in a workspace. */
export async function reportChanges(
  tools: GitTools,
  watched: WatchedWorkspace,
  { isEnd, nextBeganMs = () => undefined }: TurnEnd,
): Promise<ChangesReport> {
  const { workspace, checkouts, environmentId } = watched;
  const turns = await readTurns(workspace);
  const seen = [];
  for (const [place, checkout] of checkouts.entries()) {
    seen.push(await look(tools, watched, checkout, place, turns.begin?.[place], nextBeganMs));
  }
  const isNews =
    turns.begin !== undefined ||
    turns.end !== undefined ||
    seen.some(({ state }, place) => !isCheckedOutState(state, checkouts[place]?.commit));
  if (isEnd && isNews) await writeTurns(workspace, { ...turns, end: seen.map(({ state }) => state) });
  const shown = (files: readonly EnvironmentFileDiff[]) =>
    watched.hidesPatches ? files.map(withoutPatch) : files;
  const diffs = [
    {
      base: DiffBase.ENVIRONMENT,
      ...withinBytes(shown(seen.flatMap(({ files }) => files)), BASE_BYTES),
    },
    {
      base: DiffBase.LAST_TURN,
      ...withinBytes(shown(seen.flatMap(({ turnFiles }) => turnFiles)), TURN_BYTES),
    },
  ];
  return { environmentId, repositories: seen.map(({ repository }) => repository), diffs };
}

/**
 * Returns what differs from a commit in the first repository that has it.
 * @throws WorkFailure commit_unknown where none has
 */
export async function diffToCommit(tools: GitTools, watched: WatchedWorkspace, commit: string) {
  // Nothing else names a commit: no ref, and no option of git.
  if (!/^[0-9a-f]{4,64}$/i.test(commit)) throw new WorkFailure("commit_unknown", "the commit is no hash");
  const { workspace, checkouts, secrets } = watched;
  for (const [place, checkout] of checkouts.entries()) {
    const { location } = checkout;
    const files = await withTreeRepository(tools, workspace, checkout, place, async (repository) => {
      const name = `${commit}^{commit}`;
      const found = await tryGit(
        repository.tools,
        ["rev-parse", "--verify", "--quiet", name],
        repository.call,
      );
      if (found.exit !== 0) return undefined;
      const staged = await stageTree(repository, checkout.commit);
      const prefix = location === "" ? "" : `${location}/`;
      return compareTree(repository, checkedOutState(found.stdout.trim()), staged, { prefix, secrets });
    });
    if (files) return withinBytes(files, BASE_BYTES);
  }
  throw new WorkFailure("commit_unknown", `no repository of the environment has the commit ${commit}`);
}

/** The advice where git takes too long. */
const TOO_LARGE =
  ": there are too many files to look at; remove those that nobody needs, or have .gitignore name them";

interface InspectedRepository {
  readonly repository: MessageInitShape<typeof RepositoryChangesSchema>;
  readonly files: readonly EnvironmentFileDiff[];
  readonly turnFiles: readonly EnvironmentFileDiff[];
  /** State that the next turn is compared with; undefined when the repository cannot be read. */
  readonly state: TreeState | undefined;
}

async function look(
  tools: GitTools,
  watched: WatchedWorkspace,
  checkout: Checkout,
  place: number,
  begin: TreeState | undefined,
  nextBeganMs: () => number | undefined,
): Promise<InspectedRepository> {
  const { workspace, secrets } = watched;
  const once = async () => {
    const isAsBefore = begin === undefined || isCheckedOutState(begin, checkout.commit);
    if (isAsBefore && (await isUntouched(workspace, checkout))) return describeUntouched(watched, checkout);
    return withTreeRepository(tools, workspace, checkout, place, (repository) =>
      inspectRepository(repository, watched, checkout, begin, nextBeganMs),
    );
  };
  try {
    return await once().catch(async (error) => {
      if (!(error instanceof WorkFailure) || error.reason === "repository_replaced") throw error;
      // What the runner had kept may be damaged.
      await forgetRepository(workspace, place);
      return once();
    });
  } catch (error) {
    if (!(error instanceof WorkFailure)) throw error;
    const advice = error.reason === "git_timed_out" ? TOO_LARGE : "";
    const problem = secrets.maskText(`${error.message}${advice}`).slice(0, 1_024).toWellFormed();
    const repository = { folder: secrets.maskText(checkout.location), problem };
    return { repository, files: [], turnFiles: [], state: undefined };
  }
}

/** Returns what git would find, which need not be started for it. */
function describeUntouched(
  { secrets }: WatchedWorkspace,
  { location, commit = "", branch = "" }: Checkout,
): InspectedRepository {
  return {
    repository: {
      folder: secrets.maskText(location),
      baseCommit: commit,
      headCommit: commit,
      branch: secrets.maskText(branch).slice(0, 1_024).toWellFormed(),
      commitsAhead: 0,
      counts: countsOf([]),
    },
    files: [],
    turnFiles: [],
    state: checkedOutState(commit),
  };
}

async function inspectRepository(
  repository: TreeRepository,
  { secrets }: WatchedWorkspace,
  { location, commit }: Checkout,
  begin: TreeState | undefined,
  nextBeganMs: () => number | undefined,
): Promise<InspectedRepository> {
  const staged = await stageTree(repository, commit);
  const names = { prefix: location === "" ? "" : `${location}/`, secrets };
  const files = await compareTree(repository, checkedOutState(commit), staged, names);
  const turnFiles = begin ? await compareTree(repository, begin, staged, names) : files;
  const nextBegan = nextBeganMs();
  // Of what the next turn has written by now it must not be said that this one had left it: then both are shown as one.
  const isMixed =
    nextBegan !== undefined &&
    (await isWrittenSince(repository, begin ?? checkedOutState(commit), staged, nextBegan));
  return {
    repository: {
      folder: secrets.maskText(location),
      baseCommit: commit ?? "",
      headCommit: staged.headCommit,
      branch: secrets.maskText(staged.branch).slice(0, 1_024).toWellFormed(),
      commitsAhead: await countAhead(repository, commit, staged.headCommit),
      counts: countsOf(files),
    },
    files,
    turnFiles,
    state: isMixed ? begin : { tree: staged.tree, large: staged.large },
  };
}

/** Returns the number of commits that the present one has and the base has not. */
async function countAhead(
  { tools, call }: TreeRepository,
  base: string | undefined,
  headCommit: string,
): Promise<number> {
  if (headCommit === "" || headCommit === base) return 0;
  const range = [headCommit, ...(base ? [`^${base}`] : []), "--"];
  const { exit, stdout } = await tryGit(tools, ["rev-list", "--count", ...range], call);
  return exit === 0 ? Math.min(Number(stdout), 2 ** 31 - 1) : 0;
}

function withoutPatch(file: EnvironmentFileDiff): EnvironmentFileDiff {
  return file.patch === "" ? file : { ...file, patch: "", patchOmission: Omission.SECRETS_UNKNOWN };
}

/** Returns the files that a report holds, without the patches that do not fit. */
function withinBytes(all: readonly EnvironmentFileDiff[], maxBytes: number) {
  let left = maxBytes;
  const files: EnvironmentFileDiff[] = [];
  // First what each file has in any case.
  for (const file of all.slice(0, MAX_FILES)) {
    left -= Buffer.byteLength(file.path) + Buffer.byteLength(file.oldPath) + FILE_BYTES;
    if (left < 0) break;
    files.push(file);
  }
  for (const [place, file] of files.entries()) {
    const bytes = Buffer.byteLength(file.patch);
    if (bytes <= left) left -= bytes;
    else files[place] = { ...file, patch: "", patchOmission: Omission.FULL };
  }
  return { files, filesLeftOut: all.length - files.length };
}

function turnsFileOf(workspace: Workspace): string {
  return join(changesFolderOf(workspace), "turns.json");
}

async function readTurns(workspace: Workspace): Promise<Turns> {
  try {
    return JSON.parse(await readFile(turnsFileOf(workspace), "utf8"));
  } catch {
    // None yet, or cut short by a crash.
    return {};
  }
}

async function writeTurns(workspace: Workspace, turns: Turns): Promise<void> {
  const file = turnsFileOf(workspace);
  await mkdir(changesFolderOf(workspace), { recursive: true });
  await writeFile(`${file}.draft`, JSON.stringify(turns));
  await rename(`${file}.draft`, file);
}

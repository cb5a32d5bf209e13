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

/** A workspace whose changes are reported. */
export interface WatchedWorkspace {
  readonly environmentId: string;
  readonly workspace: Workspace;
  readonly checkouts: readonly Checkout[];
  /** Masked in every report. */
  readonly secrets: Secrets;
  /** Ids of the secrets that its work may write to the tree; none when absent. */
  readonly secretIds?: readonly string[];
  /** True if the tree may contain secrets that cannot be masked. No patch is reported then. */
  readonly hidesPatches?: boolean;
}

export type ChangesReport = MessageInitShape<typeof ReportEnvironmentChangesRequestSchema>;

/** The states of a workspace's repositories around its last turn, in the order of the checkouts. */
interface Turns {
  /** The states when the last turn began; absent before the first turn. */
  readonly begin?: readonly (TreeState | undefined)[];
  /** The states when the last turn ended; absent during a turn. */
  readonly end?: readonly (TreeState | undefined)[];
}

/** The contract's maximum number of files in a diff (EnvironmentDiff.files). */
const MAX_FILES = 2_000;
/**
 * Budgets for the patches and paths of each diff, in bytes, and the overhead of each file. A report has at most 4 MiB.
 */
const BASE_BYTES = 2_400_000;
const TURN_BYTES = 1_000_000;
const FILE_BYTES = 64;

/** Begins a turn in a workspace. Its changes are compared with the state at the end of the previous turn. */
export async function beginTurn({ workspace }: Pick<WatchedWorkspace, "workspace">): Promise<void> {
  const { begin, end } = await readTurns(workspace);
  const next = end ?? begin;
  // Before the first turn there is nothing to write.
  if (next) await writeTurns(workspace, { begin: next });
}

/** The relation of a report to the turns. */
interface TurnEnd {
  readonly isEnd: boolean;
  /** Returns when the next turn began, in milliseconds since 1970; undefined before that. */
  readonly nextBeganMs?: () => number | undefined;
}

/** Returns a report of the changes in a workspace. */
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
 * Returns the differences from a commit in the first repository that has the commit.
 * @throws WorkFailure commit_unknown if none has it
 */
export async function diffToCommit(tools: GitTools, watched: WatchedWorkspace, commit: string) {
  // Accept only hashes, no refs or git options.
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

/** The advice when git takes too long. */
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
      // The runner's own index or objects may be damaged.
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

/** Returns the description of an untouched checkout without starting git. */
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
  // If the next turn has already written files, they must not count as left by this turn: both turns are shown as one.
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

/** Returns the number of commits that HEAD has and the base does not have. */
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

/** Returns the files that fit into a report; drops the patches that do not fit. */
function withinBytes(all: readonly EnvironmentFileDiff[], maxBytes: number) {
  let left = maxBytes;
  const files: EnvironmentFileDiff[] = [];
  // First reserve room for the paths and the overhead of every file.
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
    // The file does not exist yet, or a crash truncated it.
    return {};
  }
}

async function writeTurns(workspace: Workspace, turns: Turns): Promise<void> {
  const file = turnsFileOf(workspace);
  await mkdir(changesFolderOf(workspace), { recursive: true });
  await writeFile(`${file}.draft`, JSON.stringify(turns));
  await rename(`${file}.draft`, file);
}

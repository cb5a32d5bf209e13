import { join } from "node:path";
import type { EnvironmentInitializer } from "#gen/service/v1/environment_pb.js";
import type { Log } from "../../log.ts";
import { keepIndexes } from "../changes/tree-repository.ts";
import { withStamps } from "../changes/tree-stamp.ts";
import { type Checkout, checkOutSources } from "../git/git-checkout.ts";
import { resolveInside } from "../git/tree-path.ts";
import type { Assignment } from "../protocol/assignment.ts";
import { prebuildWorkspace } from "./work-dirs.ts";
import { createWorkspace, readCheckouts, type Workspace } from "./workspace.ts";

/** The inputs from which a workspace is prepared. */
export interface Preparation {
  readonly workspace: Workspace;
  readonly initializer: EnvironmentInitializer | undefined;
  /** The id of the prebuild that it is copied from, if that still exists; empty for none. */
  readonly prebuildId: string;
  /** Paths of files in the first repository, which must not lead out of it; empty names are ignored. */
  readonly namedFiles: readonly string[];
  readonly signal: AbortSignal;
}

/**
 * Creates a workspace with all of its sources.
 *
 * @throws WorkFailure
 * @throws the reason of `signal` when the signal ended the preparation
 */
export async function prepareWorkspace(
  { tools, credentialFor }: Pick<Assignment, "tools" | "credentialFor">,
  { workspace, initializer, prebuildId, namedFiles, signal }: Preparation,
): Promise<readonly Checkout[]> {
  const { git, log, programs, repositoryCache: cache } = tools;
  const prebuild = prebuildId === "" ? undefined : prebuildWorkspace(tools, prebuildId);
  const readPrepared = async () => prebuild && (await readCheckouts(prebuild));
  const onProgress = createFetchProgress(log, workspace.folder);
  const fill = async ({ tree }: Workspace, copied?: readonly Checkout[]) => {
    // A removal during the copy makes the copy incomplete. A removal deletes the marker first.
    if (copied && !(await readPrepared())) throw new Error("the prepared workspace was removed");
    const context = { tree, copied, credentialFor, cache, onProgress, signal };
    const checkouts = await checkOutSources(git, initializer, context);
    const [first] = checkouts;
    for (const path of namedFiles) resolveInside(join(tree, first?.location ?? ""), path);
    await keepIndexes(workspace, checkouts);
    // Files that a prebuild has left in the tree count as changes, so a copy gets no stamp.
    return copied ? checkouts : withStamps(workspace, checkouts);
  };
  const copied = await readPrepared();
  if (copied) {
    try {
      return await createWorkspace(programs, workspace, (to) => fill(to, copied), prebuild);
    } catch (error) {
      if (signal.aborted || (await readPrepared())) throw error;
      log.info({ prebuildId }, "the prepared workspace was removed while it was copied");
    }
  }
  return createWorkspace(programs, workspace, (to) => fill(to));
}

/** Interval at which the progress of a long fetch is logged. */
const INTERVAL_MS = 10_000;

/**
 * Returns a function that logs one of git's progress lines per interval, and none for a quick fetch.
 *
 * @param workspace the folder that is filled
 * @param now returns the time in milliseconds
 */
export function createFetchProgress(
  log: Pick<Log, "info">,
  workspace: string,
  now = () => performance.now(),
): (progress: string) => void {
  let writtenAt = now();
  return (progress) => {
    if (now() - writtenAt < INTERVAL_MS) return;
    writtenAt = now();
    log.info({ workspace, progress }, "a repository is being fetched");
  };
}

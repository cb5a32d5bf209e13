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
  /** The id of the prepared workspace that it is copied from, if that still exists; empty for none. */
  readonly prebuildId: string;
  /** Files of the first repository that are named by their paths; empty names are ignored. */
  readonly namedFiles: readonly string[];
  readonly signal: AbortSignal;
}

/**
 * Makes a workspace with all of its sources in it.
 *
 * @throws WorkFailure
 * @throws the reason of `signal` when that ended it
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
    // A copy that a removal ran into lacks files: the removal takes the marker away first.
    if (copied && !(await readPrepared())) throw new Error("the prepared workspace was removed");
    const context = { tree, copied, credentialFor, cache, onProgress, signal };
    const checkouts = await checkOutSources(git, initializer, context);
    const [first] = checkouts;
    for (const path of namedFiles) resolveInside(join(tree, first?.location ?? ""), path);
    await keepIndexes(workspace, checkouts);
    // What a prebuild has left next to the checkout is a change.
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

/** A fetch that takes longer is shown in the log, and again after this time. */
const INTERVAL_MS = 10_000;

/**
 * Returns the function that writes git's lines of progress to the log: now and
 * then one, and none for a fetch that is quick.
 *
 * @param workspace the folder that is filled
 * @param now the time in milliseconds
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

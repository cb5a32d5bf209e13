import { readdir, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../../log.ts";
import { RepositoryCache } from "./repository-cache.ts";

/** The subfolder of the workspaces' folder that holds one cache folder for each runner. */
const FOLDER = "repository-cache";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export interface RunnerCacheOptions {
  /** The folder of the workspaces. */
  readonly workDir: string;
  /** The id of the runner. A runner works for one organization and never sees the cache of another runner. */
  readonly runnerId: string;
  /** Maximum size of the cache; undefined for no cache. */
  readonly maxBytes: number | undefined;
  readonly log: Pick<Log, "warn">;
}

/**
 * Opens a runner's cache and removes the caches that earlier registrations left in the folder. Returns undefined if
 * the runner has no cache or the folder cannot be used.
 */
export async function openRunnerCache(options: RunnerCacheOptions): Promise<RepositoryCache | undefined> {
  const { workDir, runnerId, maxBytes, log } = options;
  const root = join(workDir, FOLDER);
  try {
    const kept = maxBytes === undefined ? undefined : runnerId;
    await removeOthers(root, kept);
    if (maxBytes === undefined) return undefined;
    return await RepositoryCache.open({ folder: join(root, runnerId), maxBytes, log });
  } catch (error) {
    const problem = (error as Error).message;
    log.warn({ folder: root, problem }, "repositories are not cached: the folder cannot be used");
    return undefined;
  }
}

async function removeOthers(root: string, kept: string | undefined): Promise<void> {
  const names = await readdir(root).catch(() => []);
  for (const name of names.filter((name) => UUID.test(name) && name !== kept)) {
    await rm(join(root, name), { recursive: true, force: true });
  }
  if (kept === undefined) await rmdir(root).catch(() => undefined);
}

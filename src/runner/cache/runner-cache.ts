import { readdir, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../../log.ts";
import { RepositoryCache } from "./repository-cache.ts";

/** The subfolder of a folder of workspaces that has a folder for each runner. */
const FOLDER = "repository-cache";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export interface RunnerCacheOptions {
  /** The folder of the workspaces. */
  readonly workDir: string;
  /** The runner, which works for one organization: it finds nothing that another one cached. */
  readonly runnerId: string;
  /** The size of the cache; undefined for none. */
  readonly maxBytes: number | undefined;
  readonly log: Pick<Log, "warn">;
}

/**
 * Opens the cache of a runner, and removes what an earlier registration left in
 * the folder. A runner without a cache, or whose folder cannot be used, has none.
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

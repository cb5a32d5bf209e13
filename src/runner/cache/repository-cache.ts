import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../../log.ts";
import { Mutex } from "../process/mutex.ts";
import { CachedRepository, type CachedState, STATE_FILE } from "./cached-repository.ts";
import { isPackFileName } from "./pack-files.ts";

/** The remote and the credential that a repository is cached for. */
export interface CacheKey {
  /** The remote's address, without a secret. */
  readonly address: string;
  /** The user in the address; empty when there is none. */
  readonly user: string;
  /** The id of the credential, not its value. */
  readonly credential: string;
}

export interface RepositoryCacheSettings {
  /** The folder of one runner; it is created. Other runners have other folders. */
  readonly folder: string;
  /** Maximum size of all repositories together. */
  readonly maxBytes: number;
  readonly log: Pick<Log, "warn">;
}

/**
 * Caches the repositories that a runner has cloned, one for each remote and credential. Evicts the least recently
 * used ones to make room for others.
 */
export class RepositoryCache {
  readonly #settings: RepositoryCacheSettings;
  /** By the names of their folders, least recently used first. */
  readonly #repositories = new Map<string, CachedRepository>();
  readonly #additions = new Mutex();

  private constructor(settings: RepositoryCacheSettings) {
    this.#settings = settings;
  }

  /** Opens the cache. Removes everything from the folder that is not a cached repository. */
  static async open(settings: RepositoryCacheSettings): Promise<RepositoryCache> {
    const { folder } = settings;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const cache = new RepositoryCache(settings);
    for (const { name, state } of await readStates(folder)) cache.#add(name, state);
    await cache.#makeRoom(0);
    return cache;
  }

  /** Returns the size of all repositories together. */
  get bytes(): number {
    return this.#sum(() => true);
  }

  /** Runs `work` with the repository of a remote and credential. The repository is not evicted during it. */
  use<T>(key: CacheKey, work: (repository: CachedRepository) => Promise<T>): Promise<T> {
    const text = JSON.stringify([key.address, key.user, key.credential]);
    const name = createHash("sha256").update(text).digest("hex");
    const repository = this.#repositories.get(name) ?? this.#add(name, undefined);
    this.#repositories.delete(name);
    this.#repositories.set(name, repository);
    return repository.use(() => work(repository));
  }

  #add(name: string, state: CachedState | undefined): CachedRepository {
    const { folder, log } = this.#settings;
    const repository = new CachedRepository({
      folder: join(folder, name),
      state,
      withRoom: (bytes, write) =>
        // One at a time, since two concurrent additions would claim the same room.
        this.#additions.run(async () => {
          if (!(await this.#makeRoom(bytes))) return false;
          await write();
          return true;
        }),
      log,
    });
    this.#repositories.set(name, repository);
    return repository;
  }

  /** Evicts unused repositories until `bytes` more fit. Evicts nothing if those in use leave too little room. */
  async #makeRoom(bytes: number): Promise<boolean> {
    const { maxBytes } = this.#settings;
    const inUse = this.#sum((repository) => repository.isInUse);
    if (inUse + bytes > maxBytes) return false;
    for (const repository of this.#repositories.values()) {
      if (this.bytes + bytes <= maxBytes) break;
      if (!repository.isInUse) await repository.remove();
    }
    return this.bytes + bytes <= maxBytes;
  }

  #sum(isCounted: (repository: CachedRepository) => boolean): number {
    return [...this.#repositories.values()].reduce(
      (sum, each) => sum + (isCounted(each) ? each.bytes : 0),
      0,
    );
  }
}

interface StoredState {
  readonly name: string;
  readonly state: CachedState;
  readonly usedAtMs: number;
}

/** Returns the states of the repositories in a folder, least recently used first, and removes everything else. */
async function readStates(folder: string): Promise<readonly StoredState[]> {
  const states: StoredState[] = [];
  for (const name of await readdir(folder)) {
    const file = join(folder, name, STATE_FILE);
    try {
      if (!/^[0-9a-f]{64}$/.test(name)) throw new Error("no name of a cached repository");
      const { mtimeMs: usedAtMs, size } = await stat(file);
      if (size > MAX_STATE_BYTES) throw new Error("no state that this program has written");
      states.push({ name, state: parseState(await readFile(file, "utf8")), usedAtMs });
    } catch {
      await rm(join(folder, name), { recursive: true, force: true });
    }
  }
  return states.toSorted((a, b) => a.usedAtMs - b.usedAtMs);
}

/** Maximum size of a state file; a remote with a million refs fits. */
const MAX_STATE_BYTES = 128 * 1_024 * 1_024;

/** @throws Error for an invalid state */
function parseState(text: string): CachedState {
  const { refs, files } = JSON.parse(text);
  const isFile = (file: CachedState["files"][number]) =>
    isPackFileName(file.name) && Number.isSafeInteger(file.bytes) && file.bytes >= 0 && file.digest !== "";
  if (typeof refs !== "string" || !Array.isArray(files) || !files.every(isFile)) {
    throw new Error("the state is damaged");
  }
  return { refs, files, isChecked: false };
}

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
  /** The credential, named by its id and not by its value. */
  readonly credential: string;
}

export interface RepositoryCacheSettings {
  /** The folder of a runner, which is created: what another runner cached is not in it. */
  readonly folder: string;
  /** The size of all repositories together. */
  readonly maxBytes: number;
  readonly log: Pick<Log, "warn">;
}

/**
 * The repositories that a runner has cloned, kept for the next clone: one for each
 * remote and credential. The least recently used ones make room for others.
 */
export class RepositoryCache {
  readonly #settings: RepositoryCacheSettings;
  /** The least recently used first, by the names of their folders. */
  readonly #repositories = new Map<string, CachedRepository>();
  readonly #additions = new Mutex();

  private constructor(settings: RepositoryCacheSettings) {
    this.#settings = settings;
  }

  /** Opens the cache; what in the folder is no cached repository is removed. */
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

  /** Runs `work` with the repository of a remote and credential, which is not removed meanwhile. */
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
        // One after the other, or two of them would take the same room.
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

  /** Removes what is not in use until so many more bytes have room; nothing, where that is not enough. */
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

/** Reads the states of the repositories in a folder, the least recently used first, and removes the rest. */
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

/** The state of a remote with a million refs. */
const MAX_STATE_BYTES = 128 * 1_024 * 1_024;

/** @throws Error for a text that is no state */
function parseState(text: string): CachedState {
  const { refs, files } = JSON.parse(text);
  const isFile = (file: CachedState["files"][number]) =>
    isPackFileName(file.name) && Number.isSafeInteger(file.bytes) && file.bytes >= 0 && file.digest !== "";
  if (typeof refs !== "string" || !Array.isArray(files) || !files.every(isFile)) {
    throw new Error("the state is damaged");
  }
  return { refs, files, isChecked: false };
}

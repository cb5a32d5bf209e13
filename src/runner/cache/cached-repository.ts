import { mkdir, readdir, rename, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../../log.ts";
import { Mutex } from "../process/mutex.ts";
import { copyPackFiles, type PackFile, readPackFiles } from "./pack-files.ts";

/** A remote's branches and tags at one point in time, and the packs with all objects that they reach. */
export interface CachedState {
  /** The branches and tags, in the form of the file `packed-refs`. */
  readonly refs: string;
  readonly files: readonly PackFile[];
  /** True if git has checked the packs since this process started. */
  readonly isChecked: boolean;
}

/** Error codes of a machine that is out of disk space or file descriptors. */
const LACKS: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EMFILE", "ENFILE"]);

/** The file that describes the state; it is replaced atomically. */
export const STATE_FILE = "state.json";

export interface CachedRepositoryOptions {
  /** The folder, which need not exist. */
  readonly folder: string;
  /** The state that the folder describes; undefined for an empty cache. */
  readonly state: CachedState | undefined;
  /**
   * Evicts other repositories to make room for `bytes`, then runs `write`, which adds them. Returns false, without
   * running `write`, when there is not enough room.
   */
  readonly withRoom: (bytes: number, write: () => Promise<void>) => Promise<boolean>;
  readonly log: Pick<Log, "warn">;
}

/**
 * The cached objects of one remote for one credential: a folder of packs. Git
 * never runs in it, and only the packs and their description are read.
 */
export class CachedRepository {
  readonly #options: CachedRepositoryOptions;
  readonly #writers = new Mutex();
  #state: CachedState | undefined;
  #users = 0;
  #hasLeftovers = false;
  /** True once git has rejected the remote's objects, which are then not cached. */
  isUnfit = false;

  constructor(options: CachedRepositoryOptions) {
    this.#options = options;
    this.#state = options.state;
  }

  /** Returns the current state; undefined for an empty cache. */
  get state(): CachedState | undefined {
    return this.#state;
  }

  get bytes(): number {
    return bytesOf(this.#state?.files ?? []);
  }

  get isInUse(): boolean {
    return this.#users > 0;
  }

  /** Runs `work`. No pack of an older state is removed while it runs. */
  async use<T>(work: () => Promise<T>): Promise<T> {
    this.#users++;
    try {
      await this.#recordUse();
      return await work();
    } finally {
      this.#users--;
      if (this.#hasLeftovers) await this.#writers.run(() => this.#removeLeftovers());
    }
  }

  /**
   * Runs `write` as the only writer.
   *
   * @throws the reason of `signal` when the signal is aborted during the wait
   */
  exclusively<T>(signal: AbortSignal | undefined, write: () => Promise<T>): Promise<T> {
    return this.#writers.run(write, signal);
  }

  /**
   * Copies the packs of a state into an empty folder. Discards the state if its packs differ from those that git has
   * checked.
   *
   * @param check throws if git finds the copies damaged; called only for a state that is not checked
   * @returns true if the packs are in the folder; otherwise the folder stays empty
   * @throws errors that do not concern the cache: the reason of `signal`, or a lack of disk space or file descriptors
   */
  async copyTo(
    packs: string,
    state: CachedState,
    check: () => Promise<void>,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    try {
      await copyPackFiles(this.#options.folder, packs, state.files);
      if (!state.isChecked) await check();
      if (state === this.#state) this.#state = { ...state, isChecked: true };
      return true;
    } catch (error) {
      signal?.throwIfAborted();
      if (LACKS.has((error as NodeJS.ErrnoException).code ?? "")) throw error;
      await rm(packs, { recursive: true, force: true });
      await mkdir(packs);
      // If another writer has replaced the state in the meantime, the cache is fine.
      if (state === this.#state) await this.#throwAway(error);
      return false;
    }
  }

  /**
   * Replaces the content of the cache with the packs of a folder. Empties the cache if they do not fit. A failure is
   * only logged. Call it as a writer, after git has checked the packs and before a command could change them.
   *
   * @param refs in the form of the file `packed-refs`
   */
  async replace(refs: string, packs: string): Promise<void> {
    const known = this.#state?.files ?? [];
    try {
      const files = await readPackFiles(packs, known);
      const added = files.filter((file) => !known.includes(file));
      const hadRoom = await this.#options.withRoom(bytesOf(files) - this.bytes, () =>
        this.#write({ refs, files, isChecked: true }, packs, added),
      );
      if (!hadRoom) await this.remove();
    } catch (error) {
      await this.#throwAway(error);
    }
  }

  /** Empties the cache. */
  async remove(): Promise<void> {
    this.#state = undefined;
    await rm(this.#options.folder, { recursive: true, force: true });
  }

  async #write(state: CachedState, packs: string, added: readonly PackFile[]): Promise<void> {
    const { folder } = this.#options;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await copyPackFiles(packs, folder, added);
    const draft = join(folder, `${STATE_FILE}.draft`);
    const { refs, files } = state;
    await writeFile(draft, JSON.stringify({ refs, files }), { mode: 0o600 });
    await rename(draft, join(folder, STATE_FILE));
    this.#state = state;
    this.#hasLeftovers = true;
  }

  async #throwAway(error: unknown): Promise<void> {
    const { folder, log } = this.#options;
    log.warn({ folder, problem: (error as Error).message }, "the cache of a repository was thrown away");
    await this.remove();
  }

  /** Records the time of use, so that the order for eviction survives a restart. */
  async #recordUse(): Promise<void> {
    const now = new Date();
    if (this.#state) await utimes(join(this.#options.folder, STATE_FILE), now, now).catch(() => undefined);
  }

  /** Removes the files of older states, unless the repository is in use. */
  async #removeLeftovers(): Promise<void> {
    if (this.isInUse) return;
    this.#hasLeftovers = false;
    const { folder } = this.#options;
    const kept = new Set([STATE_FILE, ...(this.#state?.files ?? []).map(({ name }) => name)]);
    for (const name of await readdir(folder).catch(() => [])) {
      if (!kept.has(name)) await rm(join(folder, name), { recursive: true, force: true });
    }
  }
}

function bytesOf(files: readonly { readonly bytes: number }[]): number {
  return files.reduce((sum, { bytes }) => sum + bytes, 0);
}

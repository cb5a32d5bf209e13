import { mkdir, readdir, rename, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../../log.ts";
import { Mutex } from "../process/mutex.ts";
import { copyPackFiles, type PackFile, readPackFiles } from "./pack-files.ts";

/** The branches and tags of a remote at one time, and the packs with all that they reach. */
export interface CachedState {
  /** The branches and tags, in the form of the file `packed-refs`. */
  readonly refs: string;
  readonly files: readonly PackFile[];
  /** True if git has checked the packs since this process began. */
  readonly isChecked: boolean;
}

/** Errors of a machine that has no more space or files to give. */
const LACKS: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EMFILE", "ENFILE"]);

/** The file that describes the state; it is replaced atomically. */
export const STATE_FILE = "state.json";

export interface CachedRepositoryOptions {
  /** The folder, which need not exist. */
  readonly folder: string;
  /** The state that the folder describes; undefined for an empty cache. */
  readonly state: CachedState | undefined;
  /**
   * Runs `write`, which adds so many bytes, once other repositories have made room
   * for them. Returns false where they cannot.
   */
  readonly withRoom: (bytes: number, write: () => Promise<void>) => Promise<boolean>;
  readonly log: Pick<Log, "warn">;
}

/**
 * The cached objects of one remote, for one credential: a folder of packs. Git
 * never runs in it, and nothing but the packs and their description is read.
 */
export class CachedRepository {
  readonly #options: CachedRepositoryOptions;
  readonly #writers = new Mutex();
  #state: CachedState | undefined;
  #users = 0;
  #hasLeftovers = false;
  /** True once git found fault with the remote's objects: they are not cached. */
  isUnfit = false;

  constructor(options: CachedRepositoryOptions) {
    this.#options = options;
    this.#state = options.state;
  }

  /** Returns the present state; undefined for an empty cache. */
  get state(): CachedState | undefined {
    return this.#state;
  }

  get bytes(): number {
    return bytesOf(this.#state?.files ?? []);
  }

  get isInUse(): boolean {
    return this.#users > 0;
  }

  /** Runs `work`, during which no file of a state is removed. */
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
   * Runs `write` while no other writer does.
   *
   * @throws the reason of `signal` when that is aborted while it waits
   */
  exclusively<T>(signal: AbortSignal | undefined, write: () => Promise<T>): Promise<T> {
    return this.#writers.run(write, signal);
  }

  /**
   * Copies the packs of a state into an empty folder. A state whose packs are not
   * what git has checked is thrown away.
   *
   * @param check throws unless git finds the copies whole; called for a state that
   *   is not checked
   * @returns whether the packs are in the folder; it stays empty otherwise
   * @throws what ended the copy without a word about the cache: the reason of
   *   `signal`, or a full disk
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
      // Where another writer has replaced the state meanwhile, nothing is wrong.
      if (state === this.#state) await this.#throwAway(error);
      return false;
    }
  }

  /**
   * Makes the packs of a folder the content of the cache, as far as there is room.
   * A failure is in the log only. To be called by a writer, when git has checked
   * the packs, and before a command may have changed them.
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

  /** Removes all that is cached. */
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

  /** Records the time for the next start, which has to know the least recently used. */
  async #recordUse(): Promise<void> {
    const now = new Date();
    if (this.#state) await utimes(join(this.#options.folder, STATE_FILE), now, now).catch(() => undefined);
  }

  /** Removes the files of earlier states, unless somebody may be reading them. */
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

import { type FileHandle, open, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { AuditSink, ExportLine, NamedHead } from "../domain/record/audit-export.ts";

/** Bytes that are read at a time, from the end, to find where the last whole line ends. */
const TAIL_BYTES = 64 * 1024;

export interface AuditFileSettings {
  readonly path: string;
  /** Size at which a new file begins. */
  readonly bytes: number;
  /** Number of full files that are kept; 0 for all. */
  readonly count: number;
}

export interface AuditFileOptions {
  /** Milliseconds since 1970 UTC. */
  readonly now: () => number;
  /** True when another server may have continued in its own file in the meantime. */
  readonly isShared: boolean;
}

interface Opened {
  readonly handle: FileHandle;
  readonly inode: number;
  size: number;
}

/**
 * Exports the trail to a file, in the format of `chartroom audit export`. When the file is full, it is renamed with
 * the time as a suffix, so that the names of full files ascend. The next file begins with the heads that were
 * confirmed before it. What `take` has accepted is durable.
 */
export class AuditFile implements AuditSink {
  readonly target = "file";
  readonly #settings: AuditFileSettings;
  readonly #options: AuditFileOptions;
  #opened: Opened | undefined;
  /** Number of the last row of each chain written since the start. */
  readonly #written = new Map<string | null, number>();

  constructor(settings: AuditFileSettings, options: AuditFileOptions) {
    this.#settings = settings;
    this.#options = options;
  }

  async repair(): Promise<void> {
    // A missing file is created with its first lines.
    if (!(await stat(this.#settings.path).catch(() => undefined))) return;
    const { handle } = await this.#open();
    await handle.close();
  }

  async take(lines: readonly ExportLine[], confirmed: () => Promise<readonly NamedHead[]>): Promise<void> {
    const isElsewhere = this.#options.isShared && !this.#hasWrittenBefore(lines);
    if (!(await this.#isInPlace())) await this.close();
    this.#opened ??= await this.#open();
    try {
      const text = textOf(lines);
      if (isElsewhere || this.#opened.size + text.length > this.#settings.bytes) await this.#rotate();
      const { handle, size } = this.#opened;
      const written = size === 0 ? Buffer.concat([textOf([{ after: await confirmed() }]), text]) : text;
      await handle.appendFile(written);
      await handle.datasync();
      this.#opened.size += written.length;
      for (const line of lines) if ("row" in line) this.#written.set(line.row.chain, line.row.sequence);
      if (size === 0) await syncFolder(dirname(this.#settings.path));
    } catch (error) {
      // Opening it again discards a partially written line.
      await this.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    const opened = this.#opened;
    this.#opened = undefined;
    await opened?.handle.close();
  }

  /**
   * Returns whether lines continue where this process stopped; otherwise another server may have written in between.
   */
  #hasWrittenBefore(lines: readonly ExportLine[]): boolean {
    const reached = new Map(this.#written);
    const goesOn = (line: ExportLine) => {
      if (!("row" in line)) return true;
      const { chain, sequence } = line.row;
      const last = reached.get(chain) ?? sequence;
      reached.set(chain, sequence);
      return sequence <= last + 1;
    };
    return this.#written.size > 0 && lines.every(goesOn);
  }

  /** Returns whether the file is still the one at its path: it may have been moved away or removed. */
  async #isInPlace(): Promise<boolean> {
    if (!this.#opened) return true;
    const found = await stat(this.#settings.path).catch(() => undefined);
    return found?.ino === this.#opened.inode;
  }

  async #open(): Promise<Opened> {
    const handle = await open(this.#settings.path, "a+", 0o600);
    try {
      const { size, ino } = await handle.stat();
      const whole = await endOfLastLine(handle, size);
      if (whole < size) await handle.truncate(whole);
      return { handle, inode: ino, size: whole };
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Begins a new file, unless the current one is empty. */
  async #rotate(): Promise<void> {
    if (!this.#opened?.size) return;
    await this.close();
    const { path, count } = this.#settings;
    const full = await fullFilesOf(path);
    const name = `${path}.${endingAfter(full.at(-1), this.#options.now())}`;
    await rename(path, name);
    if (count > 0)
      for (const old of [...full, basename(name)].slice(0, -count)) await rm(join(dirname(path), old));
    this.#opened = await this.#open();
  }
}

const textOf = (lines: readonly ExportLine[]) =>
  Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));

const ENDING = /\.(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z)$/;

const endingOf = (ms: number) => new Date(ms).toISOString().replace(/[:.]/g, "-");

/** Returns the suffix of the next full file: the current time, or the next moment after the newest file. */
function endingAfter(newest: string | undefined, now: number): string {
  const [date = "", time = ""] = (newest && ENDING.exec(newest)?.[1]?.split("T")) || [];
  const at = time && Date.parse(`${date}T${time.replace(/^(\d\d)-(\d\d)-(\d\d)-/, "$1:$2:$3.")}`);
  return endingOf(at && at >= now ? at + 1 : now);
}

/** Returns the names of the full files of a path, oldest first. */
async function fullFilesOf(path: string): Promise<string[]> {
  const own = basename(path);
  const names = await readdir(dirname(path));
  return names.filter((name) => ENDING.exec(name)?.index === own.length && name.startsWith(own)).sort();
}

/** Returns the number of bytes up to the end of the last whole line. */
async function endOfLastLine(handle: FileHandle, size: number): Promise<number> {
  const buffer = Buffer.alloc(Math.min(size, TAIL_BYTES));
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - buffer.length);
    const { bytesRead } = await handle.read(buffer, 0, end - start, start);
    const at = buffer.subarray(0, bytesRead).lastIndexOf("\n");
    if (at !== -1) return start + at + 1;
    end = start;
  }
  return 0;
}

/** Makes the names in a folder durable, which syncing a file does not. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

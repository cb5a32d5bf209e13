import { closeSync, existsSync, fstatSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import type { WriteLines } from "./log.ts";

export interface LogFileOptions {
  readonly path: string;
  /** Maximum bytes of a file, after which the next one is begun. A longer line gets its own file. */
  readonly maxBytes: number;
  /** Number of files that are kept, including the current one; at least 1. */
  readonly files: number;
  /** Called when the file cannot be written, in which case the lines are lost, or cannot be rotated. */
  readonly onFailure: (error: unknown) => void;
}

/** A log in a file. */
export interface LogFile {
  /** Writes whole lines, and returns when the operating system has accepted them. */
  readonly write: WriteLines;
  /** Reopens the file at its path, after another program has moved it away. */
  reopen(): void;
}

/**
 * Opens a log file for appending, with rotation. When it is full, `FILE` becomes `FILE.1`, the former `FILE.1` becomes
 * `FILE.2`, and so on; the oldest is removed. No line is lost or split by that, since lines are not buffered here.
 *
 * @throws the system's error when the file cannot be opened
 */
export function openLogFile(options: LogFileOptions): LogFile {
  const { path, maxBytes, onFailure } = options;
  let file = open(path);
  const openAgain = () => {
    const next = open(path);
    closeSync(file.descriptor);
    file = next;
  };
  const writeWhole = (bytes: Buffer) => {
    if (file.bytes > 0 && file.bytes + bytes.length > maxBytes) {
      try {
        moveOn(options);
        openAgain();
      } catch (error) {
        onFailure(error);
        // Rotation is retried after the same number of bytes.
        file.bytes = 0;
      }
    }
    let written = 0;
    while (written < bytes.length) written += writeSync(file.descriptor, bytes, written);
    file.bytes += bytes.length;
  };
  return {
    write(lines) {
      try {
        for (const part of partsOf(Buffer.from(lines), maxBytes - file.bytes, maxBytes)) writeWhole(part);
      } catch (error) {
        onFailure(error);
      }
    },
    reopen() {
      try {
        openAgain();
      } catch (error) {
        // The previous file stays in use, wherever it is now.
        onFailure(error);
      }
    },
  };
}

/** Readable by its owner only, since lines name accounts and addresses. */
const MODE = 0o600;

function open(path: string): { readonly descriptor: number; bytes: number } {
  const descriptor = openSync(path, "a", MODE);
  const found = fstatSync(descriptor);
  if (!found.isFile()) {
    closeSync(descriptor);
    // Rotation would rename it, even a device such as /dev/null.
    throw new Error("it is no regular file");
  }
  return { descriptor, bytes: found.size };
}

function moveOn({ path, files }: LogFileOptions): void {
  // The file was already moved, and a new one could not be opened: the older files stay where they are.
  if (!existsSync(path)) return;
  const nth = (number: number) => (number === 0 ? path : `${path}.${number}`);
  rmSync(nth(files - 1), { force: true });
  for (let number = files - 2; number >= 0; number--)
    if (existsSync(nth(number))) renameSync(nth(number), nth(number + 1));
}

const LINE_END = 10;

/** Splits text at line ends into parts of at most `room` bytes, then `most` bytes, unless one line is longer. */
function* partsOf(lines: Buffer, room: number, most: number): Generator<Buffer> {
  let rest = lines;
  let fits = room;
  while (rest.length > 0) {
    const last = rest.length <= fits ? rest.length : rest.lastIndexOf(LINE_END, Math.max(0, fits - 1)) + 1;
    // Not even one line fits: the next file gets it.
    const end = last > 0 ? last : lineEnd(rest, most);
    yield rest.subarray(0, end);
    rest = rest.subarray(end);
    fits = most;
  }
}

function lineEnd(lines: Buffer, most: number): number {
  if (lines.length <= most) return lines.length;
  const whole = lines.lastIndexOf(LINE_END, most - 1) + 1;
  return whole > 0 ? whole : lines.indexOf(LINE_END) + 1 || lines.length;
}

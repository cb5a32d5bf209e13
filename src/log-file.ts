import { closeSync, existsSync, fstatSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import type { WriteLines } from "./log.ts";

export interface LogFileOptions {
  readonly path: string;
  /** Bytes of a file from which on the next one is begun. A longer line has a file of its own. */
  readonly maxBytes: number;
  /** Files that are kept, with the one that is written; at least 1. */
  readonly files: number;
  /** Called when the file cannot be written or exchanged; what was to be written is lost in the first case. */
  readonly onFailure: (error: unknown) => void;
}

/** A log in a file. */
export interface LogFile {
  /** Writes whole lines, and returns when the system has them. */
  readonly write: WriteLines;
  /** Opens the file at its path again, after another program has moved it away. */
  reopen(): void;
}

/**
 * Opens a file of a log for lines to be added. When it is full, `FILE` becomes `FILE.1`, that before it `FILE.2`, and so
 * on; the oldest is removed. No line is lost or divided by that: nothing is held back in this process.
 *
 * @throws the error of a file that cannot be opened
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
        // Tried again when as much has been written once more.
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
        // The one before goes on, wherever it is now.
        onFailure(error);
      }
    },
  };
}

/** Only its owner reads it: lines name accounts and addresses. */
const MODE = 0o600;

function open(path: string): { readonly descriptor: number; bytes: number } {
  const descriptor = openSync(path, "a", MODE);
  const found = fstatSync(descriptor);
  if (!found.isFile()) {
    closeSync(descriptor);
    // Its name would be given away when it is full, as that of /dev/null.
    throw new Error("it is no regular file");
  }
  return { descriptor, bytes: found.size };
}

function moveOn({ path, files }: LogFileOptions): void {
  // It was moved before, and another could not be opened: the older ones stay where they are.
  if (!existsSync(path)) return;
  const nth = (number: number) => (number === 0 ? path : `${path}.${number}`);
  rmSync(nth(files - 1), { force: true });
  for (let number = files - 2; number >= 0; number--)
    if (existsSync(nth(number))) renameSync(nth(number), nth(number + 1));
}

const LINE_END = 10;

/** Divides lines between them, so that each part fits: the first into `room`, the others into `most`, if a line does. */
function* partsOf(lines: Buffer, room: number, most: number): Generator<Buffer> {
  let rest = lines;
  let fits = room;
  while (rest.length > 0) {
    const last = rest.length <= fits ? rest.length : rest.lastIndexOf(LINE_END, Math.max(0, fits - 1)) + 1;
    // Not even one line fits: it goes to the next file.
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

import { deflateRawSync, inflateRawSync } from "node:zlib";
import { DICTIONARY } from "./diff-dictionary.ts";
import type { AuditLogTable } from "./record-schema.ts";

type DiffColumns = Pick<AuditLogTable, "diff" | "packed_diff">;

/** Bytes of diffs that are packed: shorter ones gain little, and longer ones are read alone (../listed-row.ts). */
const FEWEST_BYTES = 256;
const MOST_BYTES = 8_192;

/** Longest distance to a repeated text, which reaches over a whole diff and the dictionary; its logarithm. */
const WINDOW_BITS = 13;

const PACKING = { level: 3, memLevel: 5, windowBits: WINDOW_BITS, dictionary: DICTIONARY };

const UNPACKING = { windowBits: WINDOW_BITS, dictionary: DICTIONARY, maxOutputLength: MOST_BYTES };

/** Returns the columns of a diff: most of the record's bytes are diffs, and those of one type repeat each other. */
export function packDiff(diff: string): DiffColumns {
  const bytes = diff.length > MOST_BYTES ? undefined : Buffer.from(diff);
  if (!bytes || bytes.length < FEWEST_BYTES || bytes.length > MOST_BYTES) return { diff, packed_diff: null };
  return { diff: "", packed_diff: deflateRawSync(bytes, PACKING) };
}

/**
 * Returns the text of a diff: that of the column `diff`, and after it what is packed. At most one of them is not empty.
 * @throws Error when what is packed was changed from outside
 */
export function diffOf({ diff, packed_diff }: DiffColumns): string {
  return packed_diff === null ? diff : diff + inflateRawSync(packed_diff, UNPACKING).toString();
}

/** Returns the text of a diff for a check of its hash: one that cannot be unpacked has a text that no hash is made of. */
export function diffOfTampered(row: DiffColumns): string {
  try {
    return diffOf(row);
  } catch {
    return "";
  }
}

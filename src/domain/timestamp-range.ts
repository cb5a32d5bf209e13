import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { valueUnusable } from "./error.ts";

/** Seconds of the first and last moment of a Timestamp: the years 1 to 9999. */
const FIRST_SECOND = -62_135_596_800n;
const LAST_SECOND = 253_402_300_799n;

/**
 * Requires that a timestamp is within the years 1 to 9999: the binary form can express others, but
 * JSON cannot, and so no response could.
 * @param field JSON path of the value
 * @throws DomainError VALUE_UNUSABLE
 */
export function requireTimestampInRange(field: string, timestamp: Timestamp | undefined): void {
  if (!timestamp) return;
  const { seconds, nanos } = timestamp;
  if (seconds >= FIRST_SECOND && seconds <= LAST_SECOND && nanos >= 0 && nanos <= 999_999_999) return;
  throw valueUnusable(field, `${field} is no time of the years 1 to 9999`);
}

/**
 * Returns a timestamp in milliseconds since 1970 UTC, rounded up, for comparison with stored times,
 * which are whole milliseconds; 0 for none.
 */
export function roundedUpMs(timestamp: Timestamp | undefined): number {
  return timestamp ? Number(timestamp.seconds) * 1000 + Math.ceil(timestamp.nanos / 1e6) : 0;
}

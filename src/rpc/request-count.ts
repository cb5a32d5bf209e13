import type { DescMessage } from "@bufbuild/protobuf";
import { countBinary } from "./binary-count.ts";
import { countJson } from "./json-count.ts";
import type { RequestBounds } from "./request-bounds.ts";

/**
 * Counts what a body is made of before anything is built from it.
 *
 * @throws ConnectError BODY_TOO_COMPLEX when no valid request has as much
 */
export function countParts(
  schema: DescMessage,
  bounds: RequestBounds,
  isBinary: boolean,
  bytes: Uint8Array,
): void {
  if (isBinary) countBinary(schema, bytes, bounds);
  else countJson(bytes, bounds);
}

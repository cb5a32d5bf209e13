import type { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { writeConnectError } from "../error/error.ts";

/** The names of the measures in error messages. */
const NAMES = {
  depth: "levels of nesting",
  parts: "elements and members",
  keys: "keys",
  records: "fields",
  mask_characters: "characters in a field mask",
  other_bytes: "bytes in addition to those in base64",
} as const;

/** Returns the error for a body that has more of something than any valid request of its operation. */
export function tooComplex(measure: keyof typeof NAMES, limit: number): ConnectError {
  const message = `the body has more than the ${limit} ${NAMES[measure]} that a request of this operation can have`;
  return writeConnectError(ErrorReason.BODY_TOO_COMPLEX, message, { measure, limit: String(limit) });
}

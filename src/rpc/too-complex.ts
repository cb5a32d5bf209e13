import type { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { answer } from "./error.ts";
import type { RequestBounds } from "./request-bounds.ts";

/** What the message of an error calls each measure. */
const NAMES: Readonly<Record<Exclude<keyof RequestBounds, "bytes">, string>> = {
  depth: "levels of nesting",
  parts: "elements and members",
  keys: "keys",
  records: "fields",
  maskCharacters: "characters in a field mask",
};

/** Returns the error for a body that holds more of something than any valid request of its operation. */
export function tooComplex(measure: keyof typeof NAMES, limit: number): ConnectError {
  const message = `the body has more than the ${limit} ${NAMES[measure]} that a request of this operation can have`;
  return answer(ErrorReason.BODY_TOO_COMPLEX, message, {
    measure: measure === "maskCharacters" ? "mask_characters" : measure,
    limit: String(limit),
  });
}

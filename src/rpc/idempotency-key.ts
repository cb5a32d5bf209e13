import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import type { Interceptor } from "@connectrpc/connect";
import { valueUnusable } from "../domain/error.ts";
import { type RepeatableRequest, repeatableKey } from "../services/call/answer-once.ts";
import { deterministicBytes } from "./deterministic-bytes.ts";

/** The request header under which a caller may repeat a request without a second effect. */
export const IDEMPOTENCY_KEY = "Idempotency-Key";

/** 1 to 255 visible characters of ASCII; a header sent twice has a blank in it. */
const KEY = /^[\x21-\x7e]{1,255}$/;

/** Keyed hashes of bytes under each secret of the server, newest first. */
export type RequestMacs = (bytes: Uint8Array) => readonly Uint8Array[];

/**
 * Notes the key of a request and a hash of what it asks for, where operations
 * that change something find them. Reads ignore the header. Runs behind what
 * edits and validates requests, so that all forms of one request are one.
 */
export function idempotencyKeys(macs: RequestMacs): Interceptor {
  return (next) => (req) => {
    if (req.stream || req.method.idempotency === Idempotency.NO_SIDE_EFFECTS) return next(req);
    const key = req.header.get(IDEMPOTENCY_KEY);
    if (key !== null) {
      if (!KEY.test(key)) {
        throw valueUnusable(IDEMPOTENCY_KEY, `${IDEMPOTENCY_KEY} takes 1 to 255 visible ASCII characters`);
      }
      const name = new TextEncoder().encode(`${req.service.typeName}/${req.method.name}\0`);
      const body = deterministicBytes(req.method.input, req.message);
      const bytes = new Uint8Array(name.length + body.length);
      bytes.set(name);
      bytes.set(body, name.length);
      const repeatable: RepeatableRequest = { key, hashes: macs(bytes) };
      req.contextValues.set(repeatableKey, repeatable);
    }
    return next(req);
  };
}

import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import type { Interceptor } from "@connectrpc/connect";
import { valueUnusable } from "../domain/error.ts";
import { type RepeatableRequest, repeatableKey } from "../services/call/idempotency.ts";
import { deterministicBytes } from "./deterministic-bytes.ts";
import { deterministicPieces } from "./deterministic-pieces.ts";
import { parsedRequestKey } from "./request/parsed-request.ts";
import { runInTurns } from "./turns.ts";

/** The request header with which a caller may repeat a request without a second effect. */
export const IDEMPOTENCY_KEY = "Idempotency-Key";

/** 1 to 255 visible ASCII characters. A header that is sent twice contains a blank, and so does not match. */
const KEY = /^[\x21-\x7e]{1,255}$/;

/** Returns whether a text can be the key of a request. */
export function isIdempotencyKey(text: string): boolean {
  return KEY.test(text);
}

/** Keyed hashes of a request under each secret of the server, updated with its bytes in sequence. */
export interface RequestMacs {
  update(bytes: Uint8Array): void;
  /** Finishes and returns the hashes, newest secret first. */
  digests(): readonly Uint8Array[];
}

/** Number of bytes hashed at once: a millisecond or two under one secret. */
const PIECE_BYTES = 1024 * 1024;

/**
 * Adds the key of a request and a hash of its content to the context, for operations
 * that change something. Reads ignore the header. Runs after the interceptors that
 * edit and validate requests, so that all encodings of a request have the same hash.
 */
export function idempotencyKeys(beginMacs: () => RequestMacs): Interceptor {
  return (next) => (req) => {
    if (req.stream || req.method.idempotency === Idempotency.NO_SIDE_EFFECTS) return next(req);
    const key = req.header.get(IDEMPOTENCY_KEY);
    if (key === null) return next(req);
    if (!isIdempotencyKey(key)) {
      throw valueUnusable(IDEMPOTENCY_KEY, `${IDEMPOTENCY_KEY} takes 1 to 255 visible ASCII characters`);
    }
    const macs = beginMacs();
    macs.update(new TextEncoder().encode(`${req.service.typeName}/${req.method.name}\0`));
    const setRepeatable = (): void => {
      const repeatable: RepeatableRequest = { key, hashes: macs.digests() };
      req.contextValues.set(repeatableKey, repeatable);
    };
    const { input } = req.method;
    // Only large requests are parsed elsewhere.
    if (req.contextValues.get(parsedRequestKey) !== undefined) {
      return runInTurns(addLarge(macs, input, req.message)).then(() => {
        setRepeatable();
        return next(req);
      });
    }
    macs.update(deterministicBytes(input, req.message));
    setRepeatable();
    return next(req);
  };
}

/** Adds the bytes of a large request, the same bytes that a small request adds at once. */
function* addLarge(
  macs: RequestMacs,
  input: DescMessage,
  message: MessageShape<DescMessage>,
): Generator<void, void> {
  for (const piece of yield* deterministicPieces(input, message)) {
    for (let at = 0; at < piece.length; at += PIECE_BYTES) {
      macs.update(piece.subarray(at, at + PIECE_BYTES));
      yield;
    }
  }
}

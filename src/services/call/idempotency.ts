import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { type ContextKey, createContextKey, type HandlerContext } from "@connectrpc/connect";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { DomainError } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { findKeptAnswer, insertKeptAnswer, type StoredResponse } from "../../store/record/idempotency.ts";
import type { WriteTransaction } from "../../store/store.ts";
import { withoutSecrets } from "./response-secret.ts";

/** What a request with an idempotency key asks for. */
export interface RepeatableRequest {
  readonly key: string;
  /** Hash over operation and request under each secret of the server, newest first. */
  readonly hashes: readonly Uint8Array[];
}

/** Where the edge leaves it; undefined for requests without a key. */
export const repeatableKey: ContextKey<RepeatableRequest | undefined> = createContextKey<
  RepeatableRequest | undefined
>(undefined, { description: "repeatable request" });

/** Set on an answer that was given before. */
const REPLAYED = "Idempotency-Replayed";
/** Set on such an answer when the first one carried a secret, which was not kept. */
const SECRET_OMITTED = "Idempotency-Secret-Omitted";

/** Either the answer of a write that was done, or one that was kept. */
export type Replay<T> = { readonly done: T } | { readonly kept: StoredResponse };

/**
 * Does `fn` unless the caller's key has an answer already, and keeps its answer,
 * all in the transaction of the write: who comes second finds what the first one
 * left, or nothing of it. A failure leaves nothing.
 *
 * @throws DomainError IDEMPOTENCY_KEY_REUSED when the key came with another request
 */
export async function replayOrRun<T>(
  tx: WriteTransaction,
  ctx: HandlerContext,
  caller: Caller,
  operation: string,
  fn: () => Promise<T>,
): Promise<Replay<T>> {
  const request = ctx.values.get(repeatableKey);
  if (!request) return { done: await fn() };
  const place = { callerId: caller.subject.id, operation, key: request.key };
  const kept = await findKeptAnswer(tx, place);
  if (kept) {
    if (!request.hashes.some((hash) => equal(hash, kept.request_hash))) throw keyReused(operation);
    return { kept };
  }
  const done = await fn();
  const { output } = ctx.method;
  const { answer, omitted } = withoutSecrets(output, create(output, done as MessageInitShape<typeof output>));
  const [requestHash] = request.hashes;
  if (!requestHash) throw new Error("a repeatable request came without a hash");
  await insertKeptAnswer(tx, caller, place, {
    request_hash: requestHash,
    response: toBinary(output, answer),
    redacted: omitted ? 1 : 0,
  });
  return { done };
}

/** The answer to send, with the headers that tell a kept one. */
export function replayContext<T>(ctx: HandlerContext, once: Replay<T>): T {
  if ("done" in once) return once.done;
  ctx.responseHeader.set(REPLAYED, "true");
  if (once.kept.redacted === 1) ctx.responseHeader.set(SECRET_OMITTED, "true");
  return fromBinary(ctx.method.output, once.kept.response) as T;
}

function keyReused(operation: string): DomainError {
  return new DomainError(
    ErrorReason.IDEMPOTENCY_KEY_REUSED,
    "the idempotency key was used for another request: choose a new key for each request",
    { operation },
  );
}

function equal(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, index) => byte === other[index]);
}

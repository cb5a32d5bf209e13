import {
  clone,
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { type ContextKey, createContextKey, type HandlerContext } from "@connectrpc/connect";
import { keyReused } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import {
  findStoredResponse,
  insertStoredResponse,
  type ResponseKey,
  type StoredResponse,
} from "../../store/record/idempotency.ts";
import type { WriteTransaction } from "../../store/store.ts";
import { agentOfToken } from "../identity/environment-token.ts";

/** A request with an idempotency key. */
export interface RepeatableRequest {
  readonly key: string;
  /** Hash of the operation and the request under each secret of the server, newest first. */
  readonly hashes: readonly Uint8Array[];
}

/** The context key of the repeatable request; undefined for requests without an idempotency key. */
export const repeatableKey: ContextKey<RepeatableRequest | undefined> = createContextKey<
  RepeatableRequest | undefined
>(undefined, { description: "repeatable request" });

/** Header of a replayed response. */
const REPLAYED = "Idempotency-Replayed";
/** Header of a replayed response when the original had a secret, which was not stored. */
const SECRET_OMITTED = "Idempotency-Secret-Omitted";

/** The result of a write, or the stored response of an earlier one. */
export type Replay<T> = { readonly result: T } | { readonly stored: StoredResponse };

/**
 * Calls `fn` and stores its response, unless the caller's key already has a stored response. Both happen in the
 * transaction of the write: a concurrent request finds the complete response or none. A failure stores nothing.
 *
 * @throws DomainError IDEMPOTENCY_KEY_REUSED when the key was used for another request
 */
export async function replayOrRun<T>(
  tx: WriteTransaction,
  ctx: HandlerContext,
  caller: Caller,
  operation: string,
  fn: () => Promise<T>,
): Promise<Replay<T>> {
  const stored = await findReplay(tx, ctx, caller, operation);
  if (stored) return { stored };
  const result = await fn();
  await storeResponse(tx, ctx, caller, operation, result as object);
  return { result };
}

/**
 * Returns the stored response of the caller's key, possibly only the part written so far; undefined for a request
 * without a key and for a new key.
 *
 * @throws DomainError IDEMPOTENCY_KEY_REUSED when the key was used for another request
 */
export async function findReplay(
  tx: WriteTransaction,
  ctx: HandlerContext,
  caller: Caller,
  operation: string,
): Promise<StoredResponse | undefined> {
  const request = ctx.values.get(repeatableKey);
  if (!request) return undefined;
  const slot = await slotOf(tx, caller, operation, request.key);
  const stored = await findStoredResponse(tx, caller, slot);
  if (stored && !request.hashes.some((hash) => equal(hash, stored.request_hash))) throw keyReused(operation);
  return stored;
}

/**
 * Stores the response of a request with a key, without its secrets.
 *
 * @param before the part of the response that is already stored; this part's lists are appended
 * @returns the whole response as it is stored; undefined for a request without a key
 */
export async function storeResponse(
  tx: WriteTransaction,
  ctx: HandlerContext,
  caller: Caller,
  operation: string,
  result: object,
  before: Uint8Array = new Uint8Array(),
): Promise<Uint8Array | undefined> {
  const request = ctx.values.get(repeatableKey);
  if (!request) return undefined;
  const { output } = ctx.method;
  const { response, omitted } = withoutSecrets(
    output,
    create(output, result as MessageInitShape<typeof output>),
  );
  const [requestHash] = request.hashes;
  if (!requestHash) throw new Error("a repeatable request came without a hash");
  const slot = await slotOf(tx, caller, operation, request.key);
  // Concatenated messages merge, and their lists are appended (a rule of the Protobuf encoding).
  const whole = Buffer.concat([before, toBinary(output, response)]);
  await insertStoredResponse(tx, caller, slot, {
    request_hash: requestHash,
    response: whole,
    redacted: omitted ? 1 : 0,
  });
  return whole;
}

/**
 * Returns where a response is stored. Each agent has its own keys, since agents of one environment choose
 * independently.
 */
async function slotOf(
  tx: WriteTransaction,
  caller: Caller,
  operation: string,
  key: string,
): Promise<ResponseKey> {
  const agentId = caller.role === "environment" ? await agentOfToken(tx.db, caller) : undefined;
  return { callerId: agentId ?? caller.subject.id, operation, key };
}

/** Returns the response to send, and sets the headers of a replayed response. */
export function responseOf<T>(ctx: HandlerContext, replay: Replay<T>): T {
  if ("result" in replay) return replay.result;
  ctx.responseHeader.set(REPLAYED, "true");
  if (replay.stored.redacted === 1) ctx.responseHeader.set(SECRET_OMITTED, "true");
  return fromBinary(ctx.method.output, replay.stored.response) as T;
}

function equal(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, index) => byte === other[index]);
}

/**
 * Returns a copy of a response without its secrets, and whether there were secrets. Secrets are the fields that the
 * contract marks with `debug_redact`; they are shown only once.
 */
function withoutSecrets<D extends DescMessage>(
  schema: D,
  response: MessageShape<D>,
): { response: MessageShape<D>; omitted: boolean } {
  const copy = clone(schema, response);
  const omitted = clearSecrets(reflect(schema, copy));
  return { response: copy, omitted };
}

function clearSecrets(message: ReflectMessage): boolean {
  let omitted = false;
  for (const field of message.fields) {
    if (!message.isSet(field)) continue;
    if (field.proto.options?.debugRedact) {
      message.clear(field);
      omitted = true;
    } else if (field.fieldKind === "message") {
      omitted = clearSecrets(message.get(field)) || omitted;
    } else if (field.fieldKind === "list" && field.listKind === "message") {
      for (const value of message.get(field)) omitted = clearSecrets(value as ReflectMessage) || omitted;
    } else if (field.fieldKind === "map" && field.mapKind === "message") {
      for (const value of message.get(field).values())
        omitted = clearSecrets(value as ReflectMessage) || omitted;
    }
  }
  return omitted;
}

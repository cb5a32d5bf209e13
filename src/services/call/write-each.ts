import { fromBinary, type Message } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { DomainError } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import type { Store, WriteTransaction } from "../../store/store.ts";
import { operationOf, PART_MS, writePartAsCaller } from "./call.ts";
import { findReplay, responseOf, storeResponse } from "./idempotency.ts";
import { withinQuota } from "./storage-quota.ts";

/** An element that failed and changed nothing. */
export interface FailedElement<E> {
  readonly element: E;
  /** Position in the request, from 0. */
  readonly index: number;
  readonly error: string;
}

/** A batch whose elements are processed independently. */
export interface Batch<E, R> {
  readonly elements: readonly E[];
  /** Writes one element. A DomainError fails only this element. */
  write(tx: WriteTransaction, caller: Caller, element: E): Promise<R>;
  /** Returns the response, or a part of it, with each element in one of the lists. */
  respond(succeeded: readonly R[], failed: readonly FailedElement<E>[]): object;
  /** Returns the number of elements in a response, or in a part of it. */
  count(response: Message): number;
}

interface Part<E, R> {
  readonly succeeded: readonly R[];
  readonly failed: readonly FailedElement<E>[];
  /** Position of the first element that remains. */
  readonly next: number;
}

/**
 * Writes the elements of a batch as the caller. It uses several short transactions, and other writes run in between.
 * For a request with an idempotency key, each transaction also stores the response so far: a request repeated after a
 * failure continues where the first one ended.
 *
 * @throws DomainError as writeAsCaller; earlier elements may have been written by then
 */
export async function writeEachAsCaller<E, R>(
  store: Store,
  ctx: HandlerContext,
  batch: Batch<E, R>,
): Promise<object> {
  const operation = operationOf(ctx);
  const { output } = ctx.method;
  const { elements } = batch;
  const succeeded: R[] = [];
  const failed: FailedElement<E>[] = [];
  let next = 0;
  let isResumed = false;
  /** The response as this request last stored it. */
  let written: Uint8Array | undefined;
  // A resumed batch ends when it finds the complete response.
  while (next < elements.length || isResumed) {
    const expected = next;
    const step = await writePartAsCaller(store, ctx, async (tx, caller) => {
      const stored = await findReplay(tx, ctx, caller, operation);
      // Another request with the same key may have begun or continued in the meantime.
      const isOwn = stored?.response.length === written?.length;
      const from = stored && !isOwn ? batch.count(fromBinary(output, stored.response)) : expected;
      if (stored && from >= elements.length) return { stored, from };
      const part = await withinQuota(tx, caller, () => writePart(tx, caller, batch, from));
      const answer = batch.respond(part.succeeded, part.failed);
      const response = await storeResponse(tx, ctx, caller, operation, answer, stored?.response);
      return { part, from, response };
    });
    if (step.stored) {
      return written ? fromBinary(output, step.stored.response) : responseOf(ctx, { stored: step.stored });
    }
    const { part, from, response } = step;
    written = response;
    isResumed ||= from !== expected;
    succeeded.push(...part.succeeded);
    failed.push(...part.failed);
    next = part.next;
  }
  return batch.respond(succeeded, failed);
}

async function writePart<E, R>(
  tx: WriteTransaction,
  caller: Caller,
  { elements, write }: Batch<E, R>,
  from: number,
): Promise<Part<E, R>> {
  const succeeded: R[] = [];
  const failed: FailedElement<E>[] = [];
  const began = performance.now();
  let next = from;
  for (const element of elements.slice(from)) {
    const index = next++;
    try {
      succeeded.push(await write(tx, caller, element));
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      failed.push({ element, index, error: error.message });
    }
    if (performance.now() - began >= PART_MS) break;
  }
  return { succeeded, failed, next };
}

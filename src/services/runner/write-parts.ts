import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { type WorkError, WorkErrorSchema } from "#gen/runner/v1/work_service_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { DomainError } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { StoreUnavailable, type WriteTransaction } from "../../store/store.ts";
import { operationOf, writeAsCaller, writeReadPartAsCaller } from "../call/call.ts";
import { repeatableKey } from "../call/idempotency.ts";
import type { LeaseDependencies } from "./held-lease.ts";

/**
 * One part of a call. It changes everything it asks for or nothing, independently of the other parts. It reads what
 * it needs and returns the function that writes.
 */
export type Part<T> = (tx: WriteTransaction, caller: Caller) => Promise<() => Promise<T>>;

/** The result of a part, or the error. */
export type PartResult<T> = { readonly value: T } | { readonly error: WorkError };

/**
 * Writes the parts of a call in order. Each is a separate write; they share commits, and other callers' writes run in
 * between. With an idempotency key they are one transaction, since it also stores the response.
 *
 * @param respond returns the response from the results of the parts
 */
export async function writeParts<T, R>(
  deps: LeaseDependencies,
  ctx: HandlerContext,
  parts: readonly Part<T>[],
  respond: (results: readonly PartResult<T>[]) => R,
): Promise<R> {
  if (ctx.values.get(repeatableKey)) {
    return writeAsCaller(deps.store, ctx, async (tx, caller) => {
      const results: PartResult<T>[] = [];
      for (const part of parts) {
        const write = () => tx.attempt(async () => (await part(tx, caller))());
        results.push(await settle(deps, ctx, write, { sharesWrite: true }));
      }
      return respond(results);
    });
  }
  const writes = parts.map((part) => settle(deps, ctx, () => writeReadPartAsCaller(deps.store, ctx, part)));
  return respond(await Promise.all(writes));
}

async function settle<T>(
  { onPartFailure }: LeaseDependencies,
  ctx: HandlerContext,
  write: () => Promise<T>,
  { sharesWrite = false } = {},
): Promise<PartResult<T>> {
  try {
    return { value: await write() };
  } catch (error) {
    // An error of the database fails the whole transaction that the part shares with others.
    if (ctx.signal.aborted || (sharesWrite && error instanceof StoreUnavailable)) throw error;
    if (!(error instanceof DomainError)) onPartFailure(operationOf(ctx), error);
    return { error: workErrorOf(error) };
  }
}

/** Returns the error that a call for this part alone would return. */
export function workErrorOf(error: unknown): WorkError {
  const { reason, message, metadata = {} } = catalogueEntryOf(error);
  return create(WorkErrorSchema, { detail: { reason, metadata: { ...metadata } }, message });
}

function catalogueEntryOf(error: unknown): Pick<DomainError, "reason" | "message"> & Partial<DomainError> {
  if (error instanceof DomainError) return error;
  if (error instanceof StoreUnavailable) {
    return { reason: ErrorReason.UNAVAILABLE, message: "the server cannot store changes now: try again" };
  }
  return { reason: ErrorReason.INTERNAL, message: "the server failed; its log says why" };
}

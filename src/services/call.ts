import { type ContextKey, createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { Caller } from "../domain/caller.ts";
import type { Actor, Store, WriteTransaction } from "../store/store.ts";
import { answerOnce, tellOnce } from "./answer-once.ts";

/** Where the gate leaves the caller for the operations behind it. */
export const callerKey: ContextKey<Caller | undefined> = createContextKey<Caller | undefined>(undefined, {
  description: "caller",
});

/** The caller of an operation; the gate lets nobody through without one. */
export function callerOf(ctx: HandlerContext): Caller {
  const caller = ctx.values.get(callerKey);
  if (!caller) throw new Error("an operation ran without a caller: its route is not behind the gate");
  return caller;
}

/** Full name of the operation, such as `service.v1.ProjectService/CreateProject`. */
export function operationOf(ctx: HandlerContext): string {
  return `${ctx.service.typeName}/${ctx.method.name}`;
}

/**
 * Writes as the caller, in the name of the operation, unless its deadline has
 * passed. What `fn` returns must be the operation's answer: it is kept for a
 * request with an idempotency key, and a repetition gets it without `fn`. An
 * operation writes once.
 */
export async function writeAsCaller<T>(
  store: Store,
  ctx: HandlerContext,
  fn: (tx: WriteTransaction, caller: Caller) => Promise<T>,
): Promise<T> {
  const caller = callerOf(ctx);
  const actor: Actor = { id: caller.subject.id, principal: caller.subject.principal };
  const operation = operationOf(ctx);
  const once = await store.write(
    actor,
    operation,
    (tx) => answerOnce(tx, ctx, caller, operation, () => fn(tx, caller)),
    { signal: ctx.signal },
  );
  return tellOnce(ctx, once);
}

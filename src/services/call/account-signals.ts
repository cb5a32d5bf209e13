import { type ContextKey, createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { Caller } from "../../domain/identity/caller.ts";

/** Told when the caller of an open stream may not go on. */
export interface AccountWatch {
  /** Aborts once, with the error that the caller is told as its reason. */
  readonly signal: AbortSignal;
  /** Ends the watch; harmless when repeated. */
  close(): void;
}

/** The open streams of all callers, so that who is cut off keeps none. */
export interface AccountSignals {
  /** @param operation full name of what the stream belongs to */
  watch(caller: Caller, operation: string): AccountWatch;
  /**
   * Looks at every watched caller anew and signals those that may not go on. It
   * is awaited after a commit that cuts somebody off, and repeated for those that
   * another process cut off.
   */
  check(): Promise<void>;
}

/** How often the open streams are checked, so that one ends within a second whoever cut its caller off. */
export const CHECK_EVERY_MS = 500;

/** Why a caller that was let in may not go on, as committed now; undefined while it may. */
export type Revocation = (caller: Caller, operation: string) => Promise<Error | undefined>;

export function createAccountSignals(standing: Revocation): AccountSignals {
  const open = new Map<AbortController, { readonly caller: Caller; readonly operation: string }>();
  return {
    watch(caller, operation) {
      const controller = new AbortController();
      open.set(controller, { caller, operation });
      return { signal: controller.signal, close: () => void open.delete(controller) };
    },
    async check() {
      const known = new Map<string, Promise<Error | undefined>>();
      const judge = (caller: Caller, operation: string) => {
        // One token may hold many streams, and some that it opened in another role.
        const key = `${caller.tokenId} ${caller.role} ${operation}`;
        const judged = known.get(key) ?? standing(caller, operation);
        known.set(key, judged);
        return judged;
      };
      await Promise.all(
        [...open].map(async ([controller, { caller, operation }]) => {
          // A stream whose caller cannot be judged ends too; the check itself never fails for one.
          const refusal = await judge(caller, operation).catch((error: Error) => error);
          if (!refusal) return;
          open.delete(controller);
          controller.abort(refusal);
        }),
      );
    },
  };
}

/** Where a stream finds the signal that its caller may not go on. */
export const revokedKey: ContextKey<AbortSignal | undefined> = createContextKey<AbortSignal | undefined>(
  undefined,
  { description: "cut off" },
);

/** Aborts when the stream is over for whatever cause: the client left, a deadline passed, or the caller was cut off. */
export function streamSignalOf(ctx: HandlerContext): AbortSignal {
  const cutOff = ctx.values.get(revokedKey);
  return cutOff ? AbortSignal.any([ctx.signal, cutOff]) : ctx.signal;
}

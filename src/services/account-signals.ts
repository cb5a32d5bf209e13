import { type ContextKey, createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { Caller } from "../domain/caller.ts";

/** Told when the caller of an open stream may not go on. */
export interface AccountWatch {
  /** Aborts once, with the error that the caller is told as its reason. */
  readonly signal: AbortSignal;
  /** Ends the watch; harmless when repeated. */
  close(): void;
}

/** The open streams of all callers, so that who is cut off keeps none. */
export interface AccountSignals {
  watch(caller: Caller): AccountWatch;
  /**
   * Looks at every watched caller anew and signals those that may not go on. It
   * is awaited after a commit that cuts somebody off, and repeated for those that
   * another process cut off.
   */
  check(): Promise<void>;
}

/** How often the open streams are checked, so that one ends within a second whoever cut its caller off. */
export const CHECK_EVERY_MS = 500;

/**
 * @param standing why a caller that was let in may not go on, as committed now;
 *   undefined while it may
 */
export function createAccountSignals(
  standing: (caller: Caller) => Promise<Error | undefined>,
): AccountSignals {
  const open = new Map<AbortController, Caller>();
  return {
    watch(caller) {
      const controller = new AbortController();
      open.set(controller, caller);
      return { signal: controller.signal, close: () => void open.delete(controller) };
    },
    async check() {
      const known = new Map<string, Promise<Error | undefined>>();
      const judge = (caller: Caller) => {
        // One token may hold streams that it opened under different roles.
        const key = `${caller.tokenId} ${caller.role}`;
        const judged = known.get(key) ?? standing(caller);
        known.set(key, judged);
        return judged;
      };
      await Promise.all(
        [...open].map(async ([controller, caller]) => {
          const refusal = await judge(caller);
          if (!refusal) return;
          open.delete(controller);
          controller.abort(refusal);
        }),
      );
    },
  };
}

/** Where a stream finds the signal that its caller may not go on. */
export const cutOffKey: ContextKey<AbortSignal | undefined> = createContextKey<AbortSignal | undefined>(
  undefined,
  { description: "cut off" },
);

/** Aborts when the stream is over for whatever cause: the client left, a deadline passed, or the caller was cut off. */
export function streamSignalOf(ctx: HandlerContext): AbortSignal {
  const cutOff = ctx.values.get(cutOffKey);
  return cutOff ? AbortSignal.any([ctx.signal, cutOff]) : ctx.signal;
}

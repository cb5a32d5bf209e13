import { type ContextKey, createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { Caller } from "../../domain/identity/caller.ts";

/** A watch on the caller of an open stream. */
export interface RevocationWatch {
  /** Aborts when the caller's access is revoked; the reason is the error for the caller. */
  readonly signal: AbortSignal;
  /** Ends the watch; harmless when repeated. */
  close(): void;
}

/** A monitor of the callers of all open streams, which ends the streams of a caller whose access is revoked. */
export interface RevocationMonitor {
  /** Starts watching a caller. @param operation full name of the stream's operation */
  watch(caller: Caller, operation: string): RevocationWatch;
  /**
   * Checks every watched caller again and signals those whose access was revoked. It
   * is awaited after a commit that revokes access, and repeated periodically for
   * revocations by other processes.
   */
  check(): Promise<void>;
}

/** The interval of the check: a stream ends within a second, also when another process revoked its caller's access. */
export const CHECK_EVERY_MS = 500;

/** A function that returns the error for an authenticated caller whose access has been revoked by now; undefined while it has access. */
export type FindRevocation = (caller: Caller, operation: string) => Promise<Error | undefined>;

/** Creates a monitor without watches. */
export function createRevocationMonitor(findRevocation: FindRevocation): RevocationMonitor {
  const open = new Map<AbortController, { readonly caller: Caller; readonly operation: string }>();
  return {
    watch(caller, operation) {
      const controller = new AbortController();
      open.set(controller, { caller, operation });
      return { signal: controller.signal, close: () => void open.delete(controller) };
    },
    async check() {
      const known = new Map<string, Promise<Error | undefined>>();
      const findOnce = (caller: Caller, operation: string) => {
        // One token may have many streams, some of them opened in another role.
        const key = `${caller.tokenId} ${caller.role} ${operation}`;
        const revocation = known.get(key) ?? findRevocation(caller, operation);
        known.set(key, revocation);
        return revocation;
      };
      await Promise.all(
        [...open].map(async ([controller, { caller, operation }]) => {
          // A stream whose caller cannot be checked ends too; the check itself does not fail.
          const revocation = await findOnce(caller, operation).catch((error: Error) => error);
          if (!revocation) return;
          open.delete(controller);
          controller.abort(revocation);
        }),
      );
    },
  };
}

/** The context key of the signal that aborts when the caller's access is revoked. */
export const revokedKey: ContextKey<AbortSignal | undefined> = createContextKey<AbortSignal | undefined>(
  undefined,
  { description: "revoked" },
);

/** Returns a signal that aborts when the stream is over: the client left, the deadline passed, or the caller's access was revoked. */
export function streamSignalOf(ctx: HandlerContext): AbortSignal {
  const revoked = ctx.values.get(revokedKey);
  return revoked ? AbortSignal.any([ctx.signal, revoked]) : ctx.signal;
}

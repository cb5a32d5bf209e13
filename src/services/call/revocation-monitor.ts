import { type ContextKey, createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { Caller } from "../../domain/identity/caller.ts";

/** Watches the caller of an open stream. */
export interface RevocationWatch {
  /** Aborts when the caller's access is revoked; the reason is the error for the caller. */
  readonly signal: AbortSignal;
  /** Ends the watch; repeated calls have no effect. */
  close(): void;
}

/** Monitors the callers of all open streams, and ends the streams of a caller whose access is revoked. */
export interface RevocationMonitor {
  /** Starts watching a caller. @param operation full name of the stream's operation */
  watch(caller: Caller, operation: string): RevocationWatch;
  /**
   * Checks every watched caller and signals those whose access was revoked. A commit that revokes access awaits it;
   * it also runs periodically, for revocations by other processes.
   */
  check(): Promise<void>;
}

/** Interval of the check: a stream ends within a second even when another process revoked the access. */
export const CHECK_EVERY_MS = 500;

/** Returns the error for an authenticated caller whose access has been revoked; undefined while it has access. */
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
        // One token may have many streams, opened with different roles.
        const key = `${caller.tokenId} ${caller.role} ${operation}`;
        const revocation = known.get(key) ?? findRevocation(caller, operation);
        known.set(key, revocation);
        return revocation;
      };
      await Promise.all(
        [...open].map(async ([controller, { caller, operation }]) => {
          // A stream whose caller cannot be checked ends too; the check itself must not fail.
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

/** Returns a signal that aborts when the stream ends: the client left, the deadline passed, or access was revoked. */
export function streamSignalOf(ctx: HandlerContext): AbortSignal {
  const revoked = ctx.values.get(revokedKey);
  return revoked ? AbortSignal.any([ctx.signal, revoked]) : ctx.signal;
}

import { type BodyPace, measurePace } from "./body-pace.ts";
import type { HttpRequest } from "./listener.ts";
import type { ListenerLimits } from "./listener-limits.ts";
import type { BodyObserver } from "./request-body.ts";

/** Cuts request bodies that keep the server waiting, with one account for each and no timer of its own. */
export interface BodyGuard {
  /**
   * Guards the body of a request from now until it is over; what happens to
   * the body is to be told to the observer.
   *
   * @param cut called at most once, when the body came too slowly
   */
  watch(req: HttpRequest, cut: () => void): BodyObserver;
  /** Cuts what is too slow; to be called at short intervals. */
  check(): void;
}

/** Ends the guard of a request; of all listeners of the process. */
const releases = new WeakMap<HttpRequest, () => void>();

/**
 * Lets the client of this request take any time for its body: for calls in
 * which it keeps its side open while it waits. Without effect once the body is
 * over.
 */
export function exemptFromBodyGuard(req: HttpRequest): void {
  releases.get(req)?.();
}

export function createBodyGuard(limits: ListenerLimits): BodyGuard {
  const guarded = new Map<BodyPace, () => void>();
  return {
    watch(req, cut) {
      const pace = measurePace(limits);
      const release = (): void => {
        guarded.delete(pace);
        releases.delete(req);
      };
      guarded.set(pace, () => {
        release();
        cut();
      });
      releases.set(req, release);
      return { ...pace, over: release };
    },
    check() {
      for (const [pace, cut] of guarded) if (pace.isTooSlow()) cut();
    },
  };
}

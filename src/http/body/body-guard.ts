import type { HttpRequest } from "../connection/listener.ts";
import type { ListenerLimits } from "../connection/listener-limits.ts";
import { type BodyPace, measurePace } from "./body-pace.ts";
import type { BodyObserver } from "./request-body.ts";

/** Cuts off request bodies that are too slow. Has no timer: `check` must be called. */
export interface BodyGuard {
  /**
   * Watches the body of a request from now until it is over; events of the body
   * must be passed to the observer.
   *
   * @param owner is cut off at most once, when its body is too slow
   */
  watch(req: HttpRequest, owner: BodyOwner): BodyObserver;
  /** Cuts off bodies that are too slow; to be called at short intervals. */
  check(): void;
}

export interface BodyOwner {
  cut(): void;
}

/**
 * The property of a request that holds its guard. A WeakMap of all requests would
 * cost each of them more than this.
 */
const GUARD = Symbol("body guard");

/**
 * Lets the client of this request take any time for its body: for calls in which
 * it keeps its side open while it waits. Without effect once the body is over.
 */
export function exemptFromBodyGuard(req: HttpRequest): void {
  (req as Guardable)[GUARD]?.over();
}

export function createBodyGuard(limits: ListenerLimits): BodyGuard {
  const guarded = new Set<Guarded>();
  return {
    watch(req, owner) {
      const guard = new Guarded(guarded, measurePace(limits), owner);
      guarded.add(guard);
      (req as Guardable)[GUARD] = guard;
      return guard;
    },
    check() {
      for (const guard of guarded) guard.check();
    },
  };
}

type Guardable = HttpRequest & { [GUARD]?: Guarded };

class Guarded implements BodyObserver {
  readonly #all: Set<Guarded>;
  readonly #pace: BodyPace;
  readonly #owner: BodyOwner;

  constructor(all: Set<Guarded>, pace: BodyPace, owner: BodyOwner) {
    this.#all = all;
    this.#pace = pace;
    this.#owner = owner;
  }

  arrived(bytes: number): void {
    this.#pace.arrived(bytes);
  }

  full(): void {
    this.#pace.full();
  }

  wanted(): void {
    this.#pace.wanted();
  }

  over(): void {
    this.#all.delete(this);
  }

  check(): void {
    if (!this.#pace.isTooSlow()) return;
    this.over();
    this.#owner.cut();
  }
}

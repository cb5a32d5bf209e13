import { Code, ConnectError } from "@connectrpc/connect";
import { useEffect, useState } from "react";
import { queries } from "./server.tsx";
import { signInAgain } from "./session.ts";

/**
 * The places for streams that all tabs of the browser share. Over HTTP/1.1 a browser has six connections to a server:
 * three stay free for calls. The first is for the organization's events, which one tab passes on to the others.
 */
const SLOTS = { events: ["chartroom-stream-1"], page: ["chartroom-stream-2", "chartroom-stream-3"] } as const;

/** Milliseconds between two attempts: doubled with each failure in a row, and spread, so that tabs do not come at once. */
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;

/** Milliseconds between two readings of a page that waits for a stream's place. */
const POLL_MS = 5_000;

/** The state of a stream: `behind` while the page waits for a connection or a place. */
export type StreamState = "live" | "behind" | "ended";

export interface StreamOptions<M> {
  /** Names the stream in the page: another one begins when it changes. Undefined begins none. */
  readonly key: string | undefined;
  readonly slot: keyof typeof SLOTS;
  /** Opens the stream after what the page has, and tells when the server has taken it; called again after each interruption. */
  readonly open: (signal: AbortSignal, onHeader: () => void) => AsyncIterable<M>;
  /** Takes a message into the query cache, and remembers how far the stream has come. */
  readonly onMessage: (message: M) => void;
  /** The queries that are read now and then while the stream has no place. */
  readonly pollKey?: readonly unknown[];
  /** Whether the stream has ended for good when the server ends it without an error. */
  readonly isFinal?: () => boolean;
}

/**
 * Follows a stream of the server while the page is shown: it resumes after the last message that the page has, waits
 * longer after each failure in a row, and gives its place to other tabs while this one is hidden. The options may change;
 * only another key begins another stream.
 */
export function useStream<M>(options: StreamOptions<M>): StreamState {
  const [state, setState] = useState<StreamState>("behind");
  const [latest] = useState({ options });
  useEffect(() => {
    latest.options = options;
  });
  const { key } = options;
  useEffect(() => {
    if (key === undefined) return;
    let stay = new AbortController();
    const begin = () => {
      stay = new AbortController();
      setState("behind");
      void follow(() => latest.options, stay.signal, setState);
    };
    const onVisibility = () => {
      stay.abort();
      if (document.visibilityState === "visible") begin();
    };
    document.addEventListener("visibilitychange", onVisibility);
    if (document.visibilityState === "visible") begin();
    return () => {
      document.removeEventListener("visibilitychange", onVisibility);
      stay.abort();
    };
  }, [key, latest]);
  return state;
}

async function follow<M>(
  options: () => StreamOptions<M>,
  signal: AbortSignal,
  tell: (state: StreamState) => void,
): Promise<void> {
  const { slot, pollKey } = options();
  const poll = setInterval(() => {
    if (pollKey) void queries.invalidateQueries({ queryKey: pollKey });
  }, POLL_MS);
  try {
    await inSlot(SLOTS[slot], signal, async () => {
      clearInterval(poll);
      await readAgainAndAgain(options, signal, tell);
    });
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    clearInterval(poll);
  }
}

async function readAgainAndAgain<M>(
  options: () => StreamOptions<M>,
  signal: AbortSignal,
  tell: (state: StreamState) => void,
): Promise<void> {
  let waitMs = FIRST_WAIT_MS;
  // Events between two streams are asked for again by their sequence, so that nothing is lost in the pauses.
  while (!signal.aborted) {
    try {
      for await (const message of options().open(signal, () => tell("live"))) {
        if (signal.aborted) return;
        waitMs = FIRST_WAIT_MS;
        options().onMessage(message);
      }
      if (options().isFinal?.()) return tell("ended");
    } catch (thrown) {
      if (signal.aborted) return;
      const { code } = ConnectError.from(thrown);
      // Comes behind the header of a stream, which the transport takes for a good answer.
      if (code === Code.Unauthenticated) signInAgain.set(true);
      if (code === Code.NotFound || code === Code.PermissionDenied) return tell("ended");
    }
    tell("behind");
    await pause(waitMs * (0.5 + Math.random() / 2), signal);
    waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS);
  }
}

/** Runs something while this tab holds one of several places: the first that it gets, of which it waits for all. */
async function inSlot(
  names: readonly string[],
  signal: AbortSignal,
  run: () => Promise<void>,
): Promise<void> {
  let hasPlace = false;
  const once = async () => {
    if (hasPlace || signal.aborted) return;
    hasPlace = true;
    await run();
  };
  await Promise.all(names.map((name) => navigator.locks.request(name, { signal }, once)));
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}

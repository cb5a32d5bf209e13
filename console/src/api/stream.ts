import { Code, ConnectError } from "@connectrpc/connect";
import { useEffect, useState } from "react";
import { queries } from "./server.tsx";
import { signInAgain } from "./session.ts";

/**
 * The slots for streams, which all tabs of the browser share. Over HTTP/1.1 a browser has six connections to a
 * server; three remain free for calls. The first slot is for the organization's events, which one tab passes on to
 * the others.
 */
const SLOTS = { events: ["chartroom-stream-1"], page: ["chartroom-stream-2", "chartroom-stream-3"] } as const;

/**
 * Milliseconds between two attempts: doubled with each failure in a row, with jitter so that tabs do not retry at the
 * same time.
 */
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;

/** Milliseconds between two polls of a page that waits for a slot. */
const POLL_MS = 5_000;

/** The state of a stream: `behind` while the page waits for a connection or a slot. */
export type StreamState = "live" | "behind" | "ended";

export interface StreamOptions<M> {
  /** Identifies the stream within the page: a new key starts another stream. Undefined starts none. */
  readonly key: string | undefined;
  readonly slot: keyof typeof SLOTS;
  /**
   * Opens the stream after what the page already has, and reports when the server has accepted it. Called again after
   * each interruption.
   */
  readonly open: (signal: AbortSignal, onHeader: () => void) => AsyncIterable<M>;
  /** Puts a message into the query cache, and remembers the position in the stream. */
  readonly onMessage: (message: M) => void;
  /** The queries that are polled while the stream has no slot. */
  readonly pollKey?: readonly unknown[];
  /** Returns whether the stream is over when the server ends it without an error. */
  readonly isFinal?: () => boolean;
}

/**
 * Follows a stream of the server while the page is visible. It resumes after the last message that the page has,
 * backs off after failures, and gives its slot to other tabs while this one is hidden. The options may change; only
 * another key starts another stream.
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
  // Each stream requests events after the last sequence number, so the pauses lose none.
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
      // This error arrives after the header of a stream, which the transport counts as success.
      if (code === Code.Unauthenticated) signInAgain.set(true);
      if (code === Code.NotFound || code === Code.PermissionDenied) return tell("ended");
    }
    tell("behind");
    await pause(waitMs * (0.5 + Math.random() / 2), signal);
    waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS);
  }
}

/**
 * Runs a function while this tab holds one of several slots. It waits for all of them and takes the first that is
 * free.
 */
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

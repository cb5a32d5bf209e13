import { ConnectError } from "@connectrpc/connect";

/** A stream that is read in the background. */
export interface StreamReader<T> {
  /** Resolves when the response headers have arrived. */
  readonly opened: Promise<void>;
  /** The messages so far. */
  readonly messages: readonly T[];
  /** Resolves with the messages once there are this many, or when the stream is over. */
  until(count: number): Promise<readonly T[]>;
  /** Resolves with the first matching message, past or future; rejects when the stream ends without one. */
  find(fits: (message: T) => boolean): Promise<T>;
  /** Resolves with the error that ended the stream; for a regular end with an error that says so. */
  readonly ended: Promise<ConnectError>;
  /** Cancels the stream. */
  cancel(): void;
}

/** The call options to open a stream with. */
export interface StreamOptions {
  readonly headers: { readonly authorization: string };
  readonly signal: AbortSignal;
  readonly onHeader: () => void;
}

/**
 * Opens a stream and reads it in the background.
 *
 * @param open opens the stream
 */
export function readStream<T>(
  token: string,
  open: (options: StreamOptions) => AsyncIterable<T>,
): StreamReader<T> {
  const cancelled = new AbortController();
  const begun = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<ConnectError>();
  const messages: T[] = [];
  const checks = new Set<() => void>();
  let isOver = false;
  const runChecks = () => {
    for (const look of checks) look();
  };
  const read = async () => {
    const options = {
      headers: { authorization: `Bearer ${token}` },
      signal: cancelled.signal,
      onHeader: () => begun.resolve(),
    };
    for await (const message of open(options)) {
      messages.push(message);
      runChecks();
    }
    throw new ConnectError("the stream ended without an error");
  };
  read().catch((thrown) => {
    isOver = true;
    ended.resolve(ConnectError.from(thrown));
    runChecks();
  });
  const when = (isThere: () => boolean) =>
    new Promise<void>((resolve) => {
      const look = () => {
        if (!isOver && !isThere()) return;
        checks.delete(look);
        resolve();
      };
      checks.add(look);
      look();
    });
  return {
    opened: begun.promise,
    messages,
    ended: ended.promise,
    async until(count) {
      await when(() => messages.length >= count);
      return messages;
    },
    async find(fits) {
      await when(() => messages.some(fits));
      const found = messages.find(fits);
      if (found === undefined) throw new Error(`the stream ended first: ${await ended.promise}`);
      return found;
    },
    cancel: () => cancelled.abort(),
  };
}

import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { reasonOf } from "./failure.ts";

const IDEMPOTENCY_KEY = "Idempotency-Key";

/** Milliseconds between two attempts: doubled with each failure in a row. */
const MIN_WAIT_MS = 250;
const MAX_WAIT_MS = 5_000;

/**
 * Creates the interceptor that retries unary calls while the server is unreachable, stopping or busy, and while the
 * caller exceeds its rate limit. Each call that may change something has an idempotency key, the same in all
 * attempts, so that it is executed once.
 *
 * @param retryForMs 0 for a single attempt
 */
export function createRetries(retryForMs: number): Interceptor {
  return (next) => async (req) => {
    if (req.stream) return next(req);
    if (mayChange(req.method) && !req.header.has(IDEMPOTENCY_KEY)) req.header.set(IDEMPOTENCY_KEY, newKey());
    const beganAt = performance.now();
    for (let failures = 1; ; failures++) {
      try {
        return await next(req);
      } catch (thrown) {
        const error = ConnectError.from(thrown);
        const waitMs = waitMsAfter(error, failures);
        const isLate = performance.now() - beganAt + waitMs > retryForMs;
        if (req.signal.aborted || isLate || !isTemporary(error)) throw error;
        await pause(waitMs, req.signal);
      }
    }
  };
}

/** Returns whether a retry may succeed: the server was unreachable, stopping or busy, or asked for fewer calls. */
export function isTemporary(error: ConnectError): boolean {
  const reason = reasonOf(error);
  // An error without a reason comes from a proxy or the connection.
  if (reason === ErrorReason.UNSPECIFIED) return error.code === Code.Unavailable;
  return reason === ErrorReason.UNAVAILABLE || reason === ErrorReason.TOO_MANY_CALLS;
}

/**
 * Converts connection failures to `unavailable`, also those of streams. It must be the innermost interceptor, where
 * only the transport throws: errors of a token function or another interceptor belong to the program and are not
 * retried.
 */
export const markUnavailable: Interceptor = (next) => async (req) => {
  try {
    const res = await next(req);
    return res.stream ? { ...res, message: withUnavailable(res.message) } : res;
  } catch (thrown) {
    throw asUnavailable(thrown);
  }
};

async function* withUnavailable<T>(messages: AsyncIterable<T>): AsyncGenerator<T, void> {
  try {
    yield* messages;
  } catch (thrown) {
    throw asUnavailable(thrown);
  }
}

/**
 * Converts what `fetch` throws to `unavailable`, except errors that would be the same the next time: a response that
 * is not of this contract, and an untrusted certificate.
 */
function asUnavailable(thrown: unknown): ConnectError {
  const error = ConnectError.from(thrown);
  const { cause } = error;
  const isOfFetch = error.code === Code.Unknown && cause !== undefined && !isOfAnswer(cause);
  if (!isOfFetch || isOfCertificate(cause)) return error;
  return new ConnectError(error.rawMessage, Code.Unavailable, error.metadata, undefined, cause);
}

/** Returns whether a complete response was read that is not of this contract. */
function isOfAnswer(cause: unknown): boolean {
  return ["Error", "SyntaxError"].includes((cause as Error).name);
}

/** Only Node reports this, with the codes of OpenSSL. */
function isOfCertificate(cause: unknown): boolean {
  const { code } = Object((cause as Error).cause);
  return /CERT|LEAF_SIGNATURE/.test(String(code));
}

/**
 * Returns how many milliseconds to wait: at least what the server asks for, with jitter so that clients do not retry
 * at the same time.
 */
export function waitMsAfter({ metadata }: ConnectError, failures: number): number {
  const wholeMs = Math.min(MIN_WAIT_MS * 2 ** (failures - 1), MAX_WAIT_MS);
  // A proxy may send a date, which is ignored.
  const askedSeconds = Number(metadata.get("retry-after")) || 0;
  return Math.max(askedSeconds * 1_000, (wholeMs / 2) * (1 + Math.random()));
}

/** Waits; returns early, without an error, when the signal is aborted. */
export function pause(waitMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, waitMs);
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
  });
}

function mayChange({ idempotency }: DescMethod): boolean {
  return idempotency !== Idempotency.NO_SIDE_EFFECTS;
}

/** Returns 128 random bits. Not a UUID: browsers create those only for pages over HTTPS. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

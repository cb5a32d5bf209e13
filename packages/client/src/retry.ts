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
 * Creates the interceptor that repeats unary calls while the server cannot be reached, stops or is busy, and while the
 * caller has made too many calls. Each call that may change something has an idempotency key, the same in each attempt,
 * so that it is carried out once.
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

/** Returns whether the same call may succeed later: the server was not reached, stops, is busy or wants fewer calls. */
export function isTemporary(error: ConnectError): boolean {
  const reason = reasonOf(error);
  // Without a reason it is from a proxy, or of the connection.
  if (reason === ErrorReason.UNSPECIFIED) return error.code === Code.Unavailable;
  return reason === ErrorReason.UNAVAILABLE || reason === ErrorReason.TOO_MANY_CALLS;
}

/**
 * Makes failures of the connection `unavailable`, those of streams too. It has to be the innermost interceptor, where
 * only the transport throws: what a token's function or another interceptor throws is a program's and not repeated.
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
 * Returns what `fetch` throws as `unavailable`, and everything else as it is: an answer that is not of this contract, and a
 * certificate that is not trusted, would be the same the next time.
 */
function asUnavailable(thrown: unknown): ConnectError {
  const error = ConnectError.from(thrown);
  const { cause } = error;
  const isOfFetch = error.code === Code.Unknown && cause !== undefined && !isOfAnswer(cause);
  if (!isOfFetch || isOfCertificate(cause)) return error;
  return new ConnectError(error.rawMessage, Code.Unavailable, error.metadata, undefined, cause);
}

/** Whether an answer was read whole, but is not of this contract. */
function isOfAnswer(cause: unknown): boolean {
  return ["Error", "SyntaxError"].includes((cause as Error).name);
}

/** Only Node says so, by the codes of OpenSSL. */
function isOfCertificate(cause: unknown): boolean {
  const { code } = Object((cause as Error).cause);
  return /CERT|LEAF_SIGNATURE/.test(String(code));
}

/** Returns how many milliseconds to wait, at least as many as the server asks for; spread, so that clients do not come at once. */
export function waitMsAfter({ metadata }: ConnectError, failures: number): number {
  const wholeMs = Math.min(MIN_WAIT_MS * 2 ** (failures - 1), MAX_WAIT_MS);
  // A proxy may write a date, which is not waited for.
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

/** Returns 128 random bits. Not a UUID: browsers make those only for pages over HTTPS. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

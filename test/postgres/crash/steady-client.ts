import { setTimeout as delay } from "node:timers/promises";
import type { Ledger } from "../../crash/ledger.ts";
import { type Client, nextWrite } from "../../crash/writes.ts";
import { type Answer, reasonOf } from "../../harness/call.ts";
import type { Random } from "../../harness/random.ts";

/**
 * Time after which a call is given up and made again, by way of the proxy to another server. After an attempt that was
 * given up, the next one has twice its time, up to the most: a machine may need longer for a call in which nothing fails.
 */
const [FIRST_ANSWER_MS, MOST_ANSWER_MS] = [3_000, 12_000];

/** Calls by way of the proxy, which repeat a write under its idempotency key until it is answered. */
export interface SteadyCalls {
  /** Returns the response; only failures that a client repeats are repeated. */
  call(operation: string, body?: object): Promise<Answer>;
  /** Attempts without a usable response, and responses that were stored by an earlier attempt. */
  readonly counts: { answered: number; failed: number; replayed: number };
}

export function steadyCalls({ url, token }: { readonly url: string; readonly token: string }): SteadyCalls {
  const counts = { answered: 0, failed: 0, replayed: 0 };
  return {
    counts,
    async call(operation, body = {}) {
      const key = crypto.randomUUID();
      for (let timeMs = FIRST_ANSWER_MS; ; ) {
        const began = performance.now();
        const answer = await attempt(`${url}/api/service.v1.${operation}`, token, key, body, timeMs);
        if (answer && ![502, 503, 504].includes(answer.status)) {
          counts.answered += 1;
          if (answer.header.get("idempotency-replayed")) counts.replayed += 1;
          return answer;
        }
        counts.failed += 1;
        if (performance.now() - began >= timeMs) timeMs = Math.min(2 * timeMs, MOST_ANSWER_MS);
        await delay(100);
      }
    },
  };
}

/** Returns undefined when there is no whole response in time. */
async function attempt(
  url: string,
  token: string,
  key: string,
  body: object,
  timeMs: number,
): Promise<Answer | undefined> {
  try {
    const res = await fetch(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${token}`,
        "idempotency-key": key,
      },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(timeMs),
    });
    const text = await res.text();
    return { status: res.status, header: res.headers, body: text.startsWith("{") ? JSON.parse(text) : {} };
  } catch {
    return undefined;
  }
}

/** Returns the body of a response and expects success. */
export function bodyOf({ status, body }: Answer, what: string): Answer["body"] {
  if (status === 200) return body;
  const answer: Answer = { status, body, header: new Headers() };
  throw new Error(`${what} was answered with ${status} ${reasonOf(answer)}: ${JSON.stringify(body)}`);
}

/** Writes one thing after the other until `isOver`; each of them is acknowledged in the ledger in the end. */
export async function writeUntil(
  isOver: () => boolean,
  random: Random,
  calls: SteadyCalls,
  ledger: Ledger,
  client: Client,
): Promise<void> {
  while (!isOver()) {
    const write = nextWrite(random, ledger, client);
    const what = `${write.operation} ${JSON.stringify(write.request)}`;
    write.acknowledge(bodyOf(await calls.call(write.operation, write.request), what));
    await delay(random.integer(0, 50));
  }
}

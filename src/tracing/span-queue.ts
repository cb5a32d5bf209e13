import type { SpanMeasures } from "../metrics/span-measures.ts";
import type { Span } from "./span.ts";

/** Maximum spans that wait for the collector; further ones are dropped. */
const MAX_WAITING = 10_000;
/** Maximum spans in one export. */
const MAX_BATCH = 512;
/** Time that spans wait for others, in milliseconds. */
const COLLECT_MS = 2_000;
/** Time that the last exports may take, in milliseconds. */
const CLOSE_MS = 5_000;

export interface SpanQueueOptions {
  readonly measures: SpanMeasures;
  /** Sends spans. @throws the error of the export */
  readonly send: (spans: readonly Span[]) => Promise<void>;
  readonly onFailure: (error: unknown) => void;
  /** Maximum of waiting spans; 10,000 when absent. */
  readonly maxWaiting?: number;
}

/** Queues spans for a collector. Adding never blocks; one export runs at a time. */
export class SpanQueue {
  readonly #options: SpanQueueOptions;
  readonly #maxWaiting: number;
  #waiting: Span[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;

  constructor(options: SpanQueueOptions) {
    this.#options = options;
    this.#maxWaiting = options.maxWaiting ?? MAX_WAITING;
  }

  add(spans: readonly Span[]): void {
    const taken = spans.slice(0, Math.max(0, this.#maxWaiting - this.#waiting.length));
    this.#options.measures.dropped.queue += spans.length - taken.length;
    this.#waiting.push(...taken);
    if (this.#waiting.length >= MAX_BATCH) void this.#flush();
    else if (this.#waiting.length > 0)
      this.#timer ??= setTimeout(() => void this.#flush(), COLLECT_MS).unref();
  }

  /** Sends the queued spans, for up to 5 seconds; drops the rest. */
  async close(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, CLOSE_MS);
    });
    await Promise.race([this.#flush(), late]);
    clearTimeout(timer);
    clearTimeout(this.#timer);
    this.#options.measures.dropped.export += this.#waiting.length;
    this.#waiting = [];
  }

  #flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
    });
    return this.#sending;
  }

  async #sendAll(): Promise<void> {
    const { measures, send, onFailure } = this.#options;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, MAX_BATCH);
      try {
        await send(batch);
        measures.sent += batch.length;
      } catch (error) {
        measures.dropped.export += batch.length;
        onFailure(error);
      }
    }
  }
}

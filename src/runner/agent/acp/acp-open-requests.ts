/** The id of a JSON-RPC request. */
export type RequestId = string | number | null;

/** Maximum number of requests that an agent may have open at once. */
const MAX_REQUESTS = 256;
/** Bytes of open requests and their answers, above which no request is read. */
const MAX_BYTES = 67_108_864;
/** Bytes of answers that the agent has not read, above which none is made that is large. */
const MAX_ANSWER_BYTES = 16_777_216;

interface OpenRequest {
  readonly bytes: number;
  responseBytes: number;
}

/**
 * Counts the requests of an agent whose responses it has not read, and the bytes of both, so that an agent that
 * sends requests without end, or reads no responses, does not fill the memory.
 */
export class OpenRequests {
  /** Open requests by id; there are several for an id that the agent has reused. */
  readonly #requests = new Map<RequestId, OpenRequest[]>();
  #count = 0;
  #bytes = 0;
  #responseBytes = 0;
  #isEnded = false;
  #changed = Promise.withResolvers<void>();

  /** Returns how many requests are open, and their bytes with those of their answers. */
  get size(): { readonly count: number; readonly bytes: number } {
    return { count: this.#count, bytes: this.#bytes + this.#responseBytes };
  }

  /** Returns whether no request may be read. */
  get isFull(): boolean {
    const { count, bytes } = this.size;
    return count >= MAX_REQUESTS || bytes > MAX_BYTES;
  }

  /** Returns for people what an agent has left unread for a time, in milliseconds. */
  describe(unreadMs: number): string {
    const { count, bytes } = this.size;
    return `the agent reads no answers: ${count} of its requests, ${bytes} bytes with their answers, wait for more than ${unreadMs / 1_000} s`;
  }

  add(id: RequestId, bytes: number): void {
    this.#requests.set(id, [...(this.#requests.get(id) ?? []), { bytes, responseBytes: 0 }]);
    this.#count++;
    this.#bytes += bytes;
  }

  /** Adds the bytes of an answer that the agent has not read yet. */
  addAnswer(id: RequestId, bytes: number): void {
    const [request] = this.#requests.get(id) ?? [];
    if (!request) return;
    request.responseBytes += bytes;
    this.#responseBytes += bytes;
  }

  /** Removes a request whose response the agent has received, or that can no longer be answered. */
  delete(id: RequestId): void {
    const [request, ...rest] = this.#requests.get(id) ?? [];
    if (!request) return;
    if (rest.length > 0) this.#requests.set(id, rest);
    else this.#requests.delete(id);
    this.#count--;
    this.#bytes -= request.bytes;
    this.#responseBytes -= request.responseBytes;
    this.#notify();
  }

  /** Ends all waits, since nobody reads responses any more. */
  end(): void {
    this.#isEnded = true;
    this.#notify();
  }

  /** Resolves when a request may be read, or nobody would read its answer. */
  async waitForRoom(): Promise<void> {
    while (!this.#isEnded && this.isFull) await this.#changed.promise;
  }

  /** Resolves when a large answer may be made. */
  async waitForAnswers(): Promise<void> {
    while (!this.#isEnded && this.#responseBytes > MAX_ANSWER_BYTES) await this.#changed.promise;
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

import type { HostClient } from "./host-client.ts";

/** A host's response to one path, by which it can be asked whether that still holds. */
export interface RememberedAnswer {
  /** The ETag of the answer. */
  readonly etag: string;
  /** The part of it that was read, as JSON. */
  readonly value: unknown;
}

/** Answers of a host by path and query; a plain JSON object, to be stored between two readings. */
export type HostMemory = Readonly<Record<string, RememberedAnswer>>;

/** The longest ETag that is remembered, in characters; a host's own are below 100. */
const MAX_ETAG_CHARACTERS = 256;

/** Reads a host, and asks only whether the answer changed where it is remembered. */
export class RememberingReader {
  readonly #client: HostClient;
  readonly #before: HostMemory;
  readonly #after: Record<string, RememberedAnswer> = {};

  constructor(client: HostClient, before: HostMemory) {
    this.#client = client;
    this.#before = before;
  }

  /** The answers of this reading: what is not asked for any more is forgotten. */
  get memory(): HostMemory {
    return this.#after;
  }

  /**
   * Calls the API with GET.
   *
   * @param extract returns what is needed of a body, a value that JSON can hold
   * @throws ScmFailure
   */
  async read<T>(
    path: string,
    query: Readonly<Record<string, string>>,
    extract: (body: unknown) => T,
  ): Promise<T> {
    const key = `${path}?${new URLSearchParams(query)}`;
    const before = this.#before[key];
    const response = await this.#client.getIfChanged(path, query, before?.etag);
    if (response === undefined && before) {
      this.#after[key] = before;
      return before.value as T;
    }
    const value = extract(response?.body);
    const { etag } = response?.headers ?? {};
    if (typeof etag === "string" && etag.length <= MAX_ETAG_CHARACTERS) this.#after[key] = { etag, value };
    return value;
  }
}

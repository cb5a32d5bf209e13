import type { HostClient } from "./host-client.ts";

/** A host's response to one path, kept to send conditional requests. */
export interface RememberedAnswer {
  /** The ETag of the answer. */
  readonly etag: string;
  /** The part of it that was read, as JSON. */
  readonly value: unknown;
}

/** Answers of a host by path and query; a plain JSON object, to be stored between two readings. */
export type HostMemory = Readonly<Record<string, RememberedAnswer>>;

/** Maximum length of a remembered ETag, in characters; those of the known hosts are below 100. */
const MAX_ETAG_CHARACTERS = 256;

/** Reads from a host, with a conditional request where an earlier response is remembered. */
export class RememberingReader {
  readonly #client: HostClient;
  readonly #before: HostMemory;
  readonly #after: Record<string, RememberedAnswer> = {};

  constructor(client: HostClient, before: HostMemory) {
    this.#client = client;
    this.#before = before;
  }

  /** The responses of this reading; earlier ones that were not requested again are dropped. */
  get memory(): HostMemory {
    return this.#after;
  }

  /**
   * Calls the API with GET.
   *
   * @param extract returns the needed part of a body, as a JSON value
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

import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { fromBody } from "../../store/json.ts";

/** Stored resources for a response: their schema, and the canonical JSON of one or of a list. */
export interface Stored<D extends DescMessage, T extends string | readonly string[]> {
  readonly schema: D;
  readonly texts: T;
}

/** The parts of a response with stored resources. */
export interface StoredTexts {
  /** Name of the field in the code, such as `projects`. */
  readonly field: string;
  /** One text for a single message, several for a list. */
  readonly texts: string | readonly string[];
  /** All other fields of the response. */
  readonly rest: object;
}

/** A response with its source in private fields; a map of all responses would cost ten times as much. */
class LazyResponse {
  readonly #source: StoredTexts;
  readonly #schema: DescMessage;
  #decoded: unknown;

  constructor(source: StoredTexts, schema: DescMessage) {
    this.#source = source;
    this.#schema = schema;
  }

  static sourceOf(response: object): StoredTexts | undefined {
    return #source in response ? response.#source : undefined;
  }

  static decoded(response: LazyResponse): unknown {
    const { texts } = response.#source;
    const decode = (text: string) => fromBody(response.#schema, text);
    response.#decoded ??= typeof texts === "string" ? decode(texts) : texts.map(decode);
    return response.#decoded;
  }
}

/** Enumerable, so that a copy by spread has the messages and not an empty field. */
const DECODING: PropertyDescriptor = {
  enumerable: true,
  get(this: LazyResponse) {
    return LazyResponse.decoded(this);
  },
};

/**
 * Returns a response whose `field` contains stored resources. The messages are decoded
 * when the field is first read, also in copies of the response. A writer of JSON may
 * copy the texts of {@link storedTexts} instead.
 */
export function withStoredText<R extends object, F extends string, D extends DescMessage>(
  rest: R,
  field: F,
  stored: Stored<D, string>,
): R & { readonly [K in F]: MessageShape<D> };
export function withStoredText<R extends object, F extends string, D extends DescMessage>(
  rest: R,
  field: F,
  stored: Stored<D, readonly string[]>,
): R & { readonly [K in F]: MessageShape<D>[] };
export function withStoredText<R extends object>(
  rest: R,
  field: string,
  { schema, texts }: Stored<DescMessage, string | readonly string[]>,
): object {
  const response = Object.assign(new LazyResponse({ field, texts, rest }, schema), rest);
  // An own property of the response, so that copies include it.
  return Object.defineProperty(response, field, DECODING);
}

/** Returns the source of a response of {@link withStoredText}; undefined for any other object, including copies of a response. */
export function storedTexts(response: object): StoredTexts | undefined {
  return LazyResponse.sourceOf(response);
}

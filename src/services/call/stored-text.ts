import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { fromBody } from "../../store/json.ts";

/** Stored resources that an answer holds: their message, and the canonical JSON of one or of a list of them. */
export interface Stored<D extends DescMessage, T extends string | readonly string[]> {
  readonly schema: D;
  readonly texts: T;
}

/** What an answer was made of. */
export interface StoredTexts {
  /** Name of the field in the code, such as `projects`. */
  readonly field: string;
  /** One text for a single message, several for a list. */
  readonly texts: string | readonly string[];
  /** All other fields of the answer. */
  readonly rest: object;
}

/** Keeps beside its fields what it was made of; a map of all answers would cost ten times as much. */
class StoredAnswer {
  readonly #made: StoredTexts;
  readonly #schema: DescMessage;
  #decoded: unknown;

  constructor(made: StoredTexts, schema: DescMessage) {
    this.#made = made;
    this.#schema = schema;
  }

  static madeOf(answer: object): StoredTexts | undefined {
    return #made in answer ? answer.#made : undefined;
  }

  static decoded(answer: StoredAnswer): unknown {
    const { texts } = answer.#made;
    const decode = (text: string) => fromBody(answer.#schema, text);
    answer.#decoded ??= typeof texts === "string" ? decode(texts) : texts.map(decode);
    return answer.#decoded;
  }
}

/** Enumerable: a copy by spread takes the messages along, never an empty field. */
const DECODING: PropertyDescriptor = {
  enumerable: true,
  get(this: StoredAnswer) {
    return StoredAnswer.decoded(this);
  },
};

/**
 * An answer whose `field` holds stored resources. Whoever looks at the field
 * sees real messages, decoded at the first look, and so does every copy of the
 * answer; a writer of JSON may copy the texts that {@link storedTexts} tells
 * instead.
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
  const answer = Object.assign(new StoredAnswer({ field, texts, rest }, schema), rest);
  // A property of the answer's own, so that copies see it.
  return Object.defineProperty(answer, field, DECODING);
}

/** What {@link withStoredText} made the answer of; undefined for any other object, copies of an answer among them. */
export function storedTexts(answer: object): StoredTexts | undefined {
  return StoredAnswer.madeOf(answer);
}

// The protocol layer, its decoder and the engine report some failures only by the text of an error. Only this file
// reads those texts; protocol-texts.test.ts provokes each, and fails when a new version changes it.

/**
 * Messages in which the protocol layer blames the server, when the caller's bytes
 * cannot be decoded or decompressed.
 */
const MALFORMED = /^(parse binary: |decompression failed$|received compressed envelope, )/;

/**
 * Messages of the JavaScript engine at one of its limits. The protocol layer
 * reports them as if the caller's bytes were at fault, with an unhelpful text.
 */
const ENGINE =
  /^(?:parse binary: |serialize binary: )?(?:Maximum call stack size exceeded|Invalid (?:string|array|typed array|array buffer) length|Array buffer allocation failed|Set maximum size exceeded|Map maximum size exceeded|Maximum BigInt size exceeded)/;

/** Returns whether the protocol layer could not decode or decompress the caller's bytes. */
export function isMalformed(message: string): boolean {
  return MALFORMED.test(message);
}

/**
 * Returns whether the client reset the HTTP/2 stream of the call, or its connection: the protocol layer reports the
 * client's code, or the one that Node substitutes, as the server's.
 */
export function isStreamReset(message: string): boolean {
  return RESET.test(message);
}

const RESET = /^http\/2 stream closed with error code /;

/** Returns whether the engine reached one of its limits, which is no fault of the caller's bytes. */
export function isEngineLimit(message: string): boolean {
  return ENGINE.test(message);
}

/** Returns the size limit that a message names, in bytes; undefined for a message that names none. */
export function sizeLimitIn(message: string): string | undefined {
  return LIMIT.exec(message)?.[1];
}

/** The message in which the protocol layer names an operation's size limit. */
const LIMIT = / readMaxBytes (\d+)/;

/**
 * The decoded field, such as `cannot decode field
 * service.v1.GetProjectRequest.project_id from JSON`, and the reason.
 */
const DECODING = /^(cannot decode (?:\w+ )?[\w.]+ from JSON)(?:: | |$)(.*)$/s;

/** Names of the .proto files in what the decoder says: the last of a field's full name, and two of one oneof. */
const DECLARED_NAMES =
  /(?<=^cannot decode (?:field|oneof) [\w.]+\.)\w+(?= from JSON)|(?<= times by )\w+ and \w+$/g;

/**
 * The reasons why JSON is not a valid message, if they quote nothing that the
 * caller sent. An unknown name is included if it looks like a field name, because
 * the caller needs it; secrets contain digits or signs.
 */
const REASONS: readonly RegExp[] = [
  /^key "[A-Za-z_]{1,40}" is unknown$/,
  // The forms of value-forms.ts, which the next reason would cut off.
  /^expected (?:seconds|an existing instant|decimal digits)[\w ,.:-]+$/,
  /^(?:list item #\d+: )?expected (?:enum [\w.]+|\w+(?: \(\w+\))?)/,
  /^(?:list item|map value) must not be null$/,
  /^(?:oneof )?set multiple times(?: by \w+ and \w+)?$/,
  /^maximum recursion depth of \d+ reached$/,
  /^invalid RFC 3339 string$/,
  /^must be from \S+ to \S+ inclusive$/,
  /^path names must be lowerCamelCase$/,
  /^the escape \\u[\da-fA-F]{4} is half a character without its other half$/,
  /^The encoded data was not valid for encoding utf-8$/,
  /^Unexpected end of JSON input$/,
  /^[^"\d]{1,80} JSON at position \d+(?: \(line \d+ column \d+\))?$/,
];

/** The reasons that quote what the caller sent, each with its subject and a wording that quotes nothing. */
const QUOTING_REASONS: readonly (readonly [RegExp, RegExp, string])[] = [
  [/^/, /^duplicate (?:object|map) key /, "a key comes more than once"],
  [/^/, /^key ".*" is unknown$/s, "a key is unknown"],
  [/^/, /^map entry /, "a value of the map has the wrong type"],
  [/decode message service\./, /^(?:null$|true$|false$|-?\d|"|(?:Array|string)\()/, "expected an object"],
  [/decode enum /, /^/, "expected one of its names, or their numbers"],
];

/** The parser's message when it quotes the text around an error. */
const QUOTING = / is not valid JSON$/;

/** The values that the protocol layer quotes from headers. */
const HEADER_VALUES: readonly [RegExp, string][] = [
  [/^(unknown compression) ".*"(: supported encodings are .*)$/s, "$1$2"],
  [/^(protocol error: invalid (?:connect|grpc) timeout value): .*$/s, "$1"],
];

/**
 * Returns a message of the protocol layer about a request, without the values of
 * the request that it quotes, since one of them may be a misplaced secret. Its
 * text about JSON is included only if it cannot contain such a value, with the
 * JSON names of fields.
 */
export function redactErrorMessage(message: string): string {
  const decoding = DECODING.exec(message);
  if (!decoding) {
    if (QUOTING.test(message)) return "the body is no valid JSON";
    return HEADER_VALUES.reduce((text, [quoting, rest]) => text.replace(quoting, rest), message);
  }
  const [, what = "", why = ""] = decoding;
  if (QUOTING.test(why)) return `${what}: the body is no valid JSON`;
  for (const reason of REASONS) {
    const known = reason.exec(why);
    if (known) return withJsonNames(`${what}: ${known[0]}`);
  }
  const quoting = QUOTING_REASONS.find(([whom, reason]) => whom.test(what) && reason.test(why));
  return withJsonNames(quoting ? `${what}: ${quoting[2]}` : what);
}

/** Replaces names of the .proto files by JSON names, so that errors use one name for a field. */
function withJsonNames(message: string): string {
  return message.replace(DECLARED_NAMES, (names) =>
    names.replace(/_([a-z\d])/g, (_, letter: string) => letter.toUpperCase()),
  );
}

/** Names of headers in lower case, with their values. */
type RequestHeaders = Record<string, string | string[] | undefined>;

/** Headers that name the compression of a body or of its messages. */
const COMPRESSION_HEADERS = ["content-encoding", "connect-content-encoding", "grpc-encoding"] as const;

/** For each of them, the header in which a response says what the server knows. */
const KNOWN_HEADERS = {
  "content-encoding": "accept-encoding",
  "connect-content-encoding": "connect-accept-encoding",
  "grpc-encoding": "grpc-accept-encoding",
} as const;

/** The spellings of nearly all clients, which need no look. */
const USUAL: ReadonlySet<string> = new Set([
  "application/json",
  "application/json; charset=utf-8",
  "application/proto",
  "application/grpc",
  "application/grpc+proto",
  "application/connect+json",
  "application/connect+proto",
]);

const TOKEN = "[\\w!#$%&'*+.^`|~-]+";
const MEDIA_TYPE = new RegExp(`^\\s*(${TOKEN}/${TOKEN})\\s*(?=;|$)`);
/** One parameter, which may be empty and whose value may be quoted (RFC 9110, section 5.6.6). */
const PARAMETER = new RegExp(`;\\s*(?:(${TOKEN})=(?:"((?:[^"\\\\]|\\\\.)*)"|(${TOKEN})))?\\s*`, "y");
const UTF_8 = /^utf-?8$/i;

/**
 * Writes the headers about a request's body in the one spelling that the protocol layer knows: media types, charsets and
 * compressions are the same in upper and lower case, and values of parameters may be quoted (RFC 9110, section 8). What
 * means something else is left as it is, and refused there.
 *
 * @param headers changed in place
 */
export function normalizeBodyHeaders(headers: RequestHeaders): void {
  const contentType = headers["content-type"];
  if (typeof contentType === "string" && !USUAL.has(contentType)) {
    headers["content-type"] = usualType(contentType);
  }
  for (const name of COMPRESSION_HEADERS) {
    const value = headers[name];
    if (typeof value === "string" && /^(?:x-)?gzip$|^identity$/i.test(value)) {
      headers[name] = value.toLowerCase().replace("x-", "");
    }
  }
}

/**
 * Says in the headers of a response which compression the server knows, where the request names another one.
 *
 * @param headers in their usual spelling
 */
export function nameCompression(
  headers: RequestHeaders,
  res: { setHeader(name: string, value: string): unknown },
): void {
  for (const name of COMPRESSION_HEADERS) {
    const value = headers[name];
    if (value && value !== "gzip" && value !== "identity") res.setHeader(KNOWN_HEADERS[name], "gzip");
  }
}

/** Returns a media type without parameters that say what holds anyway; as it is where one says something else. */
function usualType(contentType: string): string {
  const [head, type] = MEDIA_TYPE.exec(contentType) ?? [];
  if (head === undefined || type === undefined) return contentType;
  const usual = type.toLowerCase();
  let end = head.length;
  while (end < contentType.length) {
    PARAMETER.lastIndex = end;
    const parameter = PARAMETER.exec(contentType);
    if (!parameter) return contentType;
    const [, name, quoted, plain] = parameter;
    end = PARAMETER.lastIndex;
    if (name === undefined) continue;
    const value = quoted?.replace(/\\(.)/g, "$1") ?? plain ?? "";
    // JSON is UTF-8; other bodies have no charset.
    if (!usual.endsWith("json") || name.toLowerCase() !== "charset" || !UTF_8.test(value)) return contentType;
  }
  return usual;
}

/** Names of headers in lower case, with their values. */
type RequestHeaders = Record<string, string | string[] | undefined>;

/** Headers that name the compression of a body or of its messages. */
const COMPRESSION_HEADERS = ["content-encoding", "connect-content-encoding", "grpc-encoding"] as const;

/** For each of them, the response header that lists the compressions the server supports. */
const KNOWN_HEADERS = {
  "content-encoding": "accept-encoding",
  "connect-content-encoding": "connect-accept-encoding",
  "grpc-encoding": "grpc-accept-encoding",
} as const;

/** The spellings that nearly all clients use, which need no normalization. */
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
 * Normalizes the headers about a request's body to the one spelling that the protocol layer accepts: media types,
 * charsets and compressions are case-insensitive, and values of parameters may be quoted (RFC 9110, section 8). Other
 * values are left unchanged, and the protocol layer refuses them.
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
 * Adds to the response the compression that the server supports, when the request names another one.
 *
 * @param headers normalized
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

/** Returns a media type without parameters that are the default; unchanged when a parameter means something else. */
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

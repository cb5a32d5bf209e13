import { valueUnusable } from "../../domain/error.ts";

/** The parameters of a query; the last two are those of the protocol's own calls by GET. */
const PARAMETERS: readonly string[] = ["message", "encoding", "connect"];

/**
 * Returns the request in the query of a URL: the JSON of the parameter `message`, or `{}`. Nothing else is read there,
 * no token above all, and an error repeats nothing of it.
 *
 * @throws DomainError VALUE_UNUSABLE
 */
export function messageInQuery(url: string): Uint8Array {
  const begin = url.indexOf("?");
  const query = new URLSearchParams(begin === -1 ? "" : url.slice(begin + 1));
  if ([...query.keys()].some((name) => !PARAMETERS.includes(name))) {
    throw unusable(
      "takes one parameter, `message`, with the request as JSON; a token goes into the header Authorization",
    );
  }
  if (query.getAll("message").length > 1) throw unusable("has the parameter `message` more than once");
  const encoding = query.get("encoding") ?? "json";
  if (encoding !== "json") throw unusable("has another encoding than json");
  return new TextEncoder().encode(query.get("message") ?? "{}");
}

function unusable(problem: string) {
  return valueUnusable("query", `the query of the URL ${problem}`);
}

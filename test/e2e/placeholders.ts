const ID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const TIME = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z/g;
const TOKEN = /cr_(pat|sat|exc|run|env|ses|lnk)_\w+|whsec_[A-Za-z0-9+/=]+/g;

/**
 * A copy of a JSON value in which what differs from run to run is replaced: ids
 * and secrets by numbers in the order of their appearance, so that the same id is
 * the same number; times by one word, since two resources may or may not be made
 * in the same millisecond; page tokens, and the place and hash of what is recorded, by one word.
 */
export function withPlaceholders<T>(value: T): T {
  const seen = new Map<string, string>();
  const numbered = (kind: string) => (found: string) => {
    const known = seen.get(found);
    if (known !== undefined) return known;
    const count = [...seen.values()].filter((each) => each.startsWith(`<${kind} `)).length;
    const placeholder = `<${kind} ${count + 1}>`;
    seen.set(found, placeholder);
    return placeholder;
  };
  const replaced = (each: unknown, name = ""): unknown => {
    if (typeof each === "string") {
      if (name === "nextToken" && each !== "") return "<page token>";
      if (name === "webhookUrl") return replaced(each.replace(/^https?:\/\/[^/]+/, "<base url>"));
      if (name === "hash" || name === "sequence") return `<${name}>`;
      return each.replace(TOKEN, numbered("token")).replace(ID, numbered("id")).replace(TIME, "<time>");
    }
    if (Array.isArray(each))
      return each.filter((element) => !isOfOneEngine(element)).map((element) => replaced(element));
    if (typeof each !== "object" || each === null) return each;
    // A figure of a server.
    if ("unit" in each && "description" in each) return { ...each, value: "<value>" };
    return Object.fromEntries(Object.entries(each).map(([key, inner]) => [key, replaced(inner, key)]));
  };
  return replaced(value) as T;
}

/** Returns whether it is a figure that SQLite alone has: the size of the log next to its file. */
function isOfOneEngine(each: unknown): boolean {
  if (typeof each !== "object" || each === null || !("labels" in each)) return false;
  return (each.labels as Record<string, unknown> | undefined)?.chartroom_database_part === "log";
}

/** A line that names a repository. */
export interface ImportLine {
  /** Number of the line, from 1. */
  readonly line: number;
  readonly remoteUri: string;
}

/** Returns the lines of a text that name repositories: without empty lines and comments, each repository once. */
export function importLines(text: string): ImportLine[] {
  const seen = new Set<string>();
  return text.split("\n").flatMap((each, at) => {
    const remoteUri = each.trim();
    if (remoteUri === "" || remoteUri.startsWith("#") || seen.has(remoteUri)) return [];
    seen.add(remoteUri);
    return [{ line: at + 1, remoteUri }];
  });
}

/** Splits a list into pieces of a length; the last may be shorter. */
export function chunksOf<T>(list: readonly T[], length: number): T[][] {
  return Array.from({ length: Math.ceil(list.length / length) }, (_, at) =>
    list.slice(at * length, (at + 1) * length),
  );
}

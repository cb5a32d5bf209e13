/** One walk along an index in the order of ids. */
export type WalkIds = (phase: number) => Promise<readonly { readonly id: string }[]>;

/**
 * Merges walks along the rows of several phases, each in the order of ids and
 * of at most `limit` rows: asked for several phases at once, the engine would
 * read all rows of all of them, or test row by row where almost none fits.
 *
 * @returns the first `limit` ids of all walks, in their order
 */
export async function mergePhases(
  phases: readonly number[],
  direction: "asc" | "desc",
  limit: number,
  walk: WalkIds,
): Promise<string[]> {
  const ids: string[] = [];
  for (const phase of new Set(phases)) for (const { id } of await walk(phase)) ids.push(id);
  ids.sort();
  if (direction === "desc") ids.reverse();
  return ids.slice(0, limit);
}

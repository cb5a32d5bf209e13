/** Minimum similarity of two names for one to be suggested for the other: half of their pairs of letters. */
const MIN_SIMILARITY = 0.5;

/**
 * Returns the operation that a path most likely means, as
 * `service.v1.ProjectService/GetProject`; undefined when none is similar.
 */
export type Suggest = (path: string) => string | undefined;

/**
 * Creates the function that suggests operations for misspelt paths.
 *
 * @param known the paths that are served, such as
 *   `/service.v1.ProjectService/GetProject`
 */
export function suggestions(known: Iterable<string>): Suggest {
  const all = [...known].map((path) => ({ path, pairs: pairsOf(path) }));
  return (path) => {
    // Longer than any name of the contract: no misspelt one.
    if (path.length > 200) return undefined;
    const asked = pairsOf(path);
    let best: string | undefined;
    let bestSimilarity = MIN_SIMILARITY;
    for (const each of all) {
      const likeness = similarityOf(asked, each.pairs);
      if (likeness <= bestSimilarity) continue;
      bestSimilarity = likeness;
      best = each.path.slice(1);
    }
    return best;
  };
}

/** Returns the pairs of consecutive letters, without regard to case, with their counts. */
function pairsOf(text: string): ReadonlyMap<string, number> {
  const folded = text.toLowerCase();
  const pairs = new Map<string, number>();
  for (let at = 0; at + 1 < folded.length; at += 1) {
    const pair = folded.slice(at, at + 2);
    pairs.set(pair, (pairs.get(pair) ?? 0) + 1);
  }
  return pairs;
}

/** Returns the Dice coefficient: twice the pairs in common, divided by those of both. */
function similarityOf(one: ReadonlyMap<string, number>, other: ReadonlyMap<string, number>): number {
  let common = 0;
  for (const [pair, times] of one) common += Math.min(times, other.get(pair) ?? 0);
  const all = [...one.values(), ...other.values()].reduce((sum, times) => sum + times, 0);
  return all === 0 ? 0 : (2 * common) / all;
}

/** Returns the known name that a mistyped one most likely means; undefined when none is similar. */
export function similarName(name: string, known: Iterable<string>): string | undefined {
  let best: string | undefined;
  // At most two typing errors.
  let least = 3;
  for (const each of known) {
    const errors = editDistance(name.toUpperCase(), each);
    if (errors < least) [best, least] = [each, errors];
  }
  return best;
}

/** Returns how many characters to insert, delete, replace or swap with their neighbour to make one text the other. */
function editDistance(from: string, to: string): number {
  let beforePrevious: readonly number[] = [];
  let previous: readonly number[] = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const at = (line: readonly number[], index: number) => line[index] ?? Number.POSITIVE_INFINITY;
      const replaced = at(previous, column - 1) + (from[row - 1] === to[column - 1] ? 0 : 1);
      const isSwapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      const swapped = isSwapped ? at(beforePrevious, column - 2) + 1 : Number.POSITIVE_INFINITY;
      current.push(Math.min(at(previous, column) + 1, at(current, column - 1) + 1, replaced, swapped));
    }
    [beforePrevious, previous] = [previous, current];
  }
  return previous[to.length] ?? 0;
}

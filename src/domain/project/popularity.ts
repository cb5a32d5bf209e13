/** The weight of a use doubles with every such span that it is later: 2^(t / 3 days). */
const DOUBLING_MS = 3 * 24 * 3600 * 1000;

/** Origin of creation times. It keeps the scores small; the order is the same for every constant. */
const EPOCH_MS = Date.UTC(2020, 0, 1);

/**
 * Returns the score after more environments were created from a project: log2 of the sum of 2^(t / 3 days) over all
 * its environments, where t is their creation time since a fixed epoch. Newer uses count more. Because the epoch is
 * fixed, time alone never changes the order of two projects.
 * @param score the current score; 0 before the first environment
 * @param createdAt creation times of the environments to add, in ms since 1970 UTC
 */
export function addToPopularity(score: number, createdAt: readonly number[]): number {
  const exponents = createdAt.map((time) => (time - EPOCH_MS) / DOUBLING_MS);
  if (score !== 0) exponents.push(score);
  if (exponents.length === 0) return 0;
  // The sum is relative to the largest term: 2^t itself overflows a double within nine years of the
  // epoch.
  const largest = Math.max(...exponents);
  return largest + Math.log2(exponents.reduce((sum, exponent) => sum + 2 ** (exponent - largest), 0));
}

/**
 * Parameters for property tests. A failure prints its seed; the environment variable
 * `SEED=<number>` reproduces its values.
 */
export const replay: { readonly seed?: number } = process.env.SEED ? { seed: Number(process.env.SEED) } : {};

/**
 * Parameters for the runs of a property. A failure prints its seed; with
 * `SEED=<number>` in the environment the same values come again.
 */
export const replay: { readonly seed?: number } = process.env.SEED ? { seed: Number(process.env.SEED) } : {};

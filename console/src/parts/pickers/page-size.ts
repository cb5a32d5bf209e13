/** Entries that a search offers at once; typing more of the name finds the rest. */
export const FOUND = 8;

/** Maximum entries of a page (contract). */
const MAX_PAGE = 100;

/** Returns how many entries to read, so that already chosen ones do not displace others, as far as one page allows. */
export const pageSizeWith = (chosen: readonly string[]): number => Math.min(MAX_PAGE, FOUND + chosen.length);

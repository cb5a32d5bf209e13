/** Entries that a search offers at once; the rest comes when more of the name is typed. */
export const FOUND = 8;

/** Most entries of a page (contract). */
const MAX_PAGE = 100;

/** Returns how many entries are read, so that those that are chosen take no other's place, as far as one page goes. */
export const pageSizeWith = (chosen: readonly string[]): number => Math.min(MAX_PAGE, FOUND + chosen.length);

import type { FoundProject, FoundProjects, ProjectPage } from "../../project/project-page.ts";
import type { Reader, Scope } from "../../store.ts";
import {
  allCandidates,
  type CandidateSource,
  endCandidates,
  hasAtMost,
  indexedCandidates,
  isSelective,
  textCandidates,
} from "./project-candidates.ts";
import { collect, countMatching, findPage, scan } from "./project-rows.ts";
import { findSearchRange } from "./project-texts.ts";
import type { SearchLimit } from "./searches.ts";

/** The thresholds by which a search chooses its strategy. */
const THRESHOLDS = {
  /**
   * Maximum number of rows of a source that is read to its end at once; a source with more is
   * likely to fill a page soon, in the page's order. Measured with all of them tested, as for a
   * count: in a million projects both take some 15 ms.
   */
  few: 3_000,
  /**
   * Maximum number of texts with a rare trigram, which is sufficient without the others: the index
   * reads 80 ns for each text of a common trigram, and testing a project takes 5 µs.
   */
  rare: 1_000,
} as const;

/**
 * Number of rows above which a source is read to its end only when nothing else helps: a row takes
 * 5 microseconds.
 */
const MAX_SOURCE_ROWS = 50_000;

/**
 * Number of rows that a scan along the order tests before it is given up: the matches are at its
 * far end.
 */
const SCAN_ROWS = 8_000;

/** Limit of such a scan where no index has shown beforehand that there are many matches. */
const UNINDEXED_SCAN_ROWS = 3_000;

/** Limit of such a scan where the only other way is to test many thousands. */
const LONG_SCAN_ROWS = 400_000;

/**
 * Returns the projects that pass a filter. Indexes lead to candidates, and each is tested: the
 * result is exact. For the search thread.
 * @param bounds for tests
 */
export async function searchProjects(
  db: Reader,
  scope: Scope,
  page: ProjectPage,
  limit: SearchLimit,
  { few, rare }: Record<keyof typeof THRESHOLDS, number> = THRESHOLDS,
): Promise<FoundProjects> {
  const { search } = page.filter;
  const range = await findSearchRange(db, scope);
  // The text holds one value per line; a search across lines would find texts that no value
  // contains.
  if (!range || search.includes("\n")) return { rows: [], count: page.countLimit && 0 };
  const collectFew = async (source: CandidateSource, most: number) => {
    const small = await isSelective(db, source, most);
    return small && collect(db, scope, page, small, most);
  };
  const sources = indexedCandidates(db, scope, page.filter);
  if (search !== "") {
    const end = endCandidates(db, search, range);
    const found = end && (await collectFew(end, rare));
    if (found) return found;
    sources.unshift(await textCandidates(db, search, range, rare));
  }
  for (const source of sources) {
    const found = await collectFew(source, few);
    if (found) return found;
  }
  const [first] = sources;
  const source = first ?? allCandidates(db, scope);
  const scanUpTo = (rows: number) => limit.attempt(rows, () => scan(db, scope, page));
  let rows = await scanUpTo(first ? SCAN_ROWS : UNINDEXED_SCAN_ROWS);
  if (!rows && first && !(await hasAtMost(db, first, MAX_SOURCE_ROWS))) rows = await scanUpTo(LONG_SCAN_ROWS);
  rows ??= await findPage(db, scope, page, source);
  return { rows, count: await count(db, scope, page, rows, source) };
}

async function count(
  db: Reader,
  scope: Scope,
  page: ProjectPage,
  found: readonly FoundProject[],
  source: CandidateSource,
): Promise<number | undefined> {
  const { countLimit, after } = page;
  if (countLimit === undefined) return undefined;
  const isWhole = !after && found.length < page.limit;
  return isWhole ? Math.min(found.length, countLimit) : countMatching(db, scope, page, source);
}

/** Length of a trigram in characters. */
const LENGTH = 3;

/**
 * Maximum number of trigrams in a query for one term: each costs the time of reading its rows, and
 * a few are almost as selective as all.
 */
const ASKED_AT_MOST = 8;

/** Number of those that overlap at the end of the term. */
const ASKED_OF_END = 4;

/**
 * Characters that the index's tokenizer would drop or change; it takes all others as parts of a
 * token.
 */
const UNTAKEN = /[^a-z0-9\u0080-\uffff]/g;

const SURROGATE = /[\ud800-\udfff]/;

/**
 * Returns the trigrams of a folded text, each followed by a blank: every three consecutive
 * characters of a line, and the last two and the last one of each line. So a text of one or two
 * characters begins a trigram wherever it occurs, and a longer one occurs only where all of its
 * trigrams do.
 */
export function searchTrigrams(text: string): string {
  let grams = "";
  for (const line of text.split("\n")) {
    for (const gram of gramsOf(line, true)) grams += `${gram} `;
  }
  return grams;
}

/**
 * Returns the full-text query that finds the texts that may contain a folded term; each result must
 * be verified. The term is not empty and has no line break.
 */
export function trigramQuery(term: string): string {
  return isShort(term) ? `"${taken(term)}"*` : allTrigrams(queryTrigrams(term));
}

/**
 * Returns the distinct trigrams that the query for a term uses; the term is no shorter than a
 * trigram.
 */
export function queryTrigrams(term: string): string[] {
  const grams = gramsOf(term, false);
  return [...new Set(grams.length <= ASKED_AT_MOST ? grams : lastGrams(grams))];
}

/** Returns the full-text query that finds the texts with all of these trigrams. */
export function allTrigrams(grams: readonly string[]): string {
  return grams.map((gram) => `"${gram}"`).join(" AND ");
}

/**
 * Returns whether a term is shorter than a trigram, so that it is looked up as the beginning of
 * trigrams.
 */
export function isShort(term: string): boolean {
  return term.length < 2 * LENGTH && [...term].length < LENGTH;
}

/**
 * Selects trigrams from the end, where texts and ids differ most: all of the last ones, as numbers
 * that share their digits differ only there, and those before without overlap.
 */
function lastGrams(grams: readonly string[]): string[] {
  return grams
    .filter((_, place) => {
      const behind = grams.length - 1 - place;
      return behind < ASKED_OF_END || (behind - ASKED_OF_END + 1) % LENGTH === 0;
    })
    .slice(-ASKED_AT_MOST);
}

/**
 * Returns the trigrams of a line.
 * @param withEnd true to include the shorter ones at the end
 */
function gramsOf(line: string, withEnd: boolean): string[] {
  const text = taken(line);
  // A list of characters costs more than the text itself, and few texts need one.
  const characters = SURROGATE.test(text) ? [...text] : undefined;
  const count = (characters ?? text).length - (withEnd ? 0 : LENGTH - 1);
  return Array.from({ length: count }, (_, start) =>
    characters ? characters.slice(start, start + LENGTH).join("") : text.slice(start, start + LENGTH),
  );
}

/**
 * Maps the characters that the tokenizer does not take, such as blanks, signs and quotes, to the
 * private use area. A text that uses that area itself may be found wrongly, and is dropped when the
 * results are verified.
 */
function taken(text: string): string {
  return text.replace(UNTAKEN, (character) => String.fromCharCode(0xe000 + character.charCodeAt(0)));
}

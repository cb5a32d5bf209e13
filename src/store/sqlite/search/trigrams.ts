/** Length of a trigram in characters. */
const TRIGRAM_LENGTH = 3;

/**
 * Maximum number of trigrams in a query for one term: each costs the time of reading its rows, and
 * a few are almost as selective as all.
 */
const MAX_QUERY_TRIGRAMS = 8;

/** Number of those that overlap at the end of the term. */
const QUERY_TRIGRAMS_AT_END = 4;

/**
 * Characters that the index's tokenizer would drop or change; it takes all others as parts of a
 * token.
 */
const NON_TOKEN = /[^a-z0-9\u0080-\uffff]/g;

const SURROGATE = /[\ud800-\udfff]/;

/**
 * Returns the trigrams of a folded text, each followed by a blank: every three consecutive
 * characters of a line, and the last two and the last one of each line. So a text of one or two
 * characters begins a trigram wherever it occurs, and a longer one occurs only where all of its
 * trigrams do.
 */
export function searchTrigrams(text: string): string {
  let trigrams = "";
  for (const line of text.split("\n")) {
    for (const trigram of trigramsOf(line, true)) trigrams += `${trigram} `;
  }
  return trigrams;
}

/**
 * Returns the full-text query that finds the texts that may contain a folded term; each result must
 * be verified. The term is not empty and has no line break.
 */
export function trigramQuery(term: string): string {
  return isShort(term) ? `"${toTokenCharacters(term)}"*` : everyTrigramQuery(queryTrigrams(term));
}

/**
 * Returns the distinct trigrams that the query for a term uses; the term is no shorter than a
 * trigram.
 */
export function queryTrigrams(term: string): string[] {
  const trigrams = trigramsOf(term, false);
  return [...new Set(trigrams.length <= MAX_QUERY_TRIGRAMS ? trigrams : lastTrigrams(trigrams))];
}

/** Returns the full-text query that finds the texts with all of these trigrams. */
export function everyTrigramQuery(trigrams: readonly string[]): string {
  return trigrams.map((trigram) => `"${trigram}"`).join(" AND ");
}

/**
 * Returns whether a term is shorter than a trigram, so that it is looked up as the beginning of
 * trigrams.
 */
export function isShort(term: string): boolean {
  return term.length < 2 * TRIGRAM_LENGTH && [...term].length < TRIGRAM_LENGTH;
}

/**
 * Selects trigrams from the end, where texts and ids differ most: all of the last ones, as numbers
 * that share their digits differ only there, and those before without overlap.
 */
function lastTrigrams(trigrams: readonly string[]): string[] {
  return trigrams
    .filter((_, place) => {
      const behind = trigrams.length - 1 - place;
      return behind < QUERY_TRIGRAMS_AT_END || (behind - QUERY_TRIGRAMS_AT_END + 1) % TRIGRAM_LENGTH === 0;
    })
    .slice(-MAX_QUERY_TRIGRAMS);
}

/**
 * Returns the trigrams of a line.
 * @param withEnd true to include the shorter ones at the end
 */
function trigramsOf(line: string, withEnd: boolean): string[] {
  const text = toTokenCharacters(line);
  // A list of characters costs more than the text itself, and few texts need one.
  const characters = SURROGATE.test(text) ? [...text] : undefined;
  const count = (characters ?? text).length - (withEnd ? 0 : TRIGRAM_LENGTH - 1);
  return Array.from({ length: count }, (_, start) =>
    characters
      ? characters.slice(start, start + TRIGRAM_LENGTH).join("")
      : text.slice(start, start + TRIGRAM_LENGTH),
  );
}

/**
 * Maps the characters that the tokenizer does not take, such as blanks, signs and quotes, to the
 * private use area. A text that uses that area itself may be found wrongly, and is dropped when the
 * results are verified.
 */
function toTokenCharacters(text: string): string {
  return text.replace(NON_TOKEN, (character) => String.fromCharCode(0xe000 + character.charCodeAt(0)));
}

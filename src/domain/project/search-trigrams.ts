/** Length of a gram in characters. */
const LENGTH = 3;

/**
 * A query names no more grams of a term: each costs the time of reading its
 * rows, and a few tell almost as much as all.
 */
const ASKED_AT_MOST = 8;

/** So many of them overlap at the end of the term. */
const ASKED_OF_END = 4;

/** What the index's tokenizer would drop or change; everything else it takes as a part of a token. */
const UNTAKEN = /[^a-z0-9\u0080-\uffff]/g;

const SURROGATE = /[\ud800-\udfff]/;

/**
 * The grams of a folded text, with a blank behind each: every three characters
 * that follow one another in a line, and the last two and the last one of each
 * line. So a text of one or two characters begins a gram wherever it stands,
 * and a longer one stands only where all of its grams do.
 */
export function searchTrigrams(text: string): string {
  let grams = "";
  for (const line of text.split("\n")) {
    for (const gram of gramsOf(line, true)) grams += `${gram} `;
  }
  return grams;
}

/**
 * What the full-text index is asked for to find the texts that may contain a
 * folded term; whether they do must be tested. The term is not empty and has no
 * line break.
 */
export function trigramQuery(term: string): string {
  return isShort(term) ? `"${taken(term)}"*` : allTrigrams(queryTrigrams(term));
}

/** The grams that a term asks for, each once; the term is no shorter than a gram. */
export function queryTrigrams(term: string): string[] {
  const grams = gramsOf(term, false);
  return [...new Set(grams.length <= ASKED_AT_MOST ? grams : lastGrams(grams))];
}

/** What the full-text index is asked for to find the texts that have each of these grams. */
export function allTrigrams(grams: readonly string[]): string {
  return grams.map((gram) => `"${gram}"`).join(" AND ");
}

/** Whether a term is shorter than a gram, so that it is looked up as the beginning of grams. */
export function isShort(term: string): boolean {
  return term.length < 2 * LENGTH && [...term].length < LENGTH;
}

/**
 * From the end, where texts and ids differ most: the last ones all, as numbers
 * that share their digits differ only there, and those before side by side.
 */
function lastGrams(grams: readonly string[]): string[] {
  return grams
    .filter((_, place) => {
      const behind = grams.length - 1 - place;
      return behind < ASKED_OF_END || (behind - ASKED_OF_END + 1) % LENGTH === 0;
    })
    .slice(-ASKED_AT_MOST);
}

/** @param withEnd whether the shorter grams at the end count too */
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
 * Puts what the tokenizer does not take, such as blanks, signs and quotes, to
 * characters of the private use area. A text that uses those itself is found
 * where it need not be, and then tested.
 */
function taken(text: string): string {
  return text.replace(UNTAKEN, (character) => String.fromCharCode(0xe000 + character.charCodeAt(0)));
}

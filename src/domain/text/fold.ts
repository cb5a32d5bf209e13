/** Characters that any case mapping changes; all others fold to themselves. */
const CASED = /\p{Changes_When_Casemapped}/gu;

/**
 * Cache of folded characters. It starts with the three letters that fold to an equivalent although
 * no mapping of one character leads there (CaseFolding.txt, status S).
 */
const folded = new Map([
  ["\u1fd3", "\u0390"],
  ["\u1fe3", "\u03b0"],
  ["\ufb05", "\ufb06"],
]);

/**
 * Folds text for comparison without regard to case, by Unicode simple case folding: one character
 * folds to one character, so a substring of the folded text is the folding of a substring. Two
 * texts fold alike exactly when a regular expression with the flags `i` and `u` treats them as
 * equal.
 */
export function fold(text: string): string {
  return text.replace(CASED, (character) => {
    let result = folded.get(character);
    if (result === undefined) {
      result = foldCharacter(character);
      folded.set(character, result);
    }
    return result;
  });
}

function foldCharacter(character: string): string {
  // Upper case first: final sigma, long s and similar letters meet their plain letter there.
  const candidate = single(single(character.toUpperCase(), character).toLowerCase(), character);
  if (sameLetter(candidate, character)) return candidate;
  // Dotless i and similar letters: their capital belongs to another letter.
  const lower = single(character.toLowerCase(), character);
  return sameLetter(lower, character) ? lower : character;
}

function single(text: string, otherwise: string): string {
  return [...text].length === 1 ? text : otherwise;
}

function sameLetter(one: string, other: string): boolean {
  return new RegExp(`^${one}$`, "iu").test(other);
}

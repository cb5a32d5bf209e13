import { RE2JS } from "@bufbuild/re2";

/**
 * Maximum length of the program that a pattern compiles to. RE2 never backtracks: its time grows
 * with text times program, and at this size 4,096 characters took 0.3 s in the worst case found. A
 * plain text of 1,024 characters, the longest pattern of the contract, fits.
 */
export const MAX_INSTRUCTIONS = 1_100;

/**
 * Estimate above which a pattern is not even compiled: that alone could take seconds and hundreds
 * of megabytes.
 */
const MAX_ESTIMATED_INSTRUCTIONS = 100_000;

export interface TextPattern {
  /** Length of the compiled program, at most MAX_INSTRUCTIONS. */
  readonly instructions: number;
  /** Returns whether some part of the text matches. */
  matches(text: string): boolean;
}

/** Compiles a regular expression in RE2 syntax, or returns the problem with it. */
export function compilePattern(pattern: string): TextPattern | { problem: string } {
  if (estimatedInstructions(pattern) > MAX_ESTIMATED_INSTRUCTIONS) {
    return { problem: "the pattern repeats too much: use smaller or fewer repeats" };
  }
  let compiled: RE2JS;
  try {
    compiled = RE2JS.compile(pattern);
  } catch (error) {
    const cause = (error as Error).message.replace(/^error parsing regexp: /, "");
    return { problem: `the pattern is no regular expression in RE2 syntax: ${cause}` };
  }
  const instructions = compiled.re2().prog.numInst();
  if (instructions > MAX_INSTRUCTIONS) {
    return {
      problem: `the pattern compiles to ${instructions} instructions, and ${MAX_INSTRUCTIONS} are allowed`,
    };
  }
  return { instructions, matches: (text) => compiled.test(text) };
}

/**
 * Returns an upper bound for the order of the program's size, from its text alone. A repeat after a
 * group copies the group; as it is not known which groups contain which, each counts as if it
 * contained all others. RE2 accepts nested repeats of up to 1,000.
 */
function estimatedInstructions(pattern: string): number {
  let length = pattern.length;
  let copies = 1;
  for (const [, group, min, most] of pattern.matchAll(/(\)?)\{(\d+)(?:,(\d*))?\}/g)) {
    const count = Math.max(Number(min), Number(most ?? 0), 1);
    if (group === ")") copies = Math.min(copies * count, 1_000);
    else length += count;
  }
  return length * copies;
}

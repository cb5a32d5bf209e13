/**
 * Returns a pattern of RE2 in the words of ECMA-262, which JSON Schema takes: `.` leaves out the line feed only, and
 * `\s` means the white space of ASCII.
 *
 * @throws Error for what the two do not share, so that no rule of the contract changes its meaning unseen
 */
export function ecmaPattern(re2: string): string {
  if (/\(\?[^:]|\\[AzQEpPCWwbBdDS]|\[\[:/.test(re2)) throw new Error(`no pattern of ECMA-262: ${re2}`);
  let written = "";
  let isClass = false;
  for (let at = 0; at < re2.length; at += 1) {
    const char = re2[at] as string;
    if (char === "\\") {
      const escaped = re2[at + 1] ?? "";
      at += 1;
      if (escaped !== "s") written += char + escaped;
      else written += isClass ? "\\t\\n\\f\\r " : "[\\t\\n\\f\\r ]";
    } else if (char === "." && !isClass) written += "[^\\n]";
    else {
      if (char === "[" && !isClass) isClass = true;
      else if (char === "]" && isClass) isClass = false;
      written += char;
    }
  }
  new RegExp(written, "u");
  return written;
}

/** Returns a text as a pattern that matches nothing else. */
export function literalPattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}

/** Returns what a text of CEL between quotes means as a pattern; characters by their codes stay so written. */
export function celPattern(quoted: string): string {
  return visible(quoted.replaceAll("\\\\", "\\"));
}

/** Returns a text in which control characters are written by their codes. */
export function visible(text: string): string {
  return text.replace(/\p{Cc}/gu, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`);
}

/**
 * Characters that no part of a branch name may contain: control characters, space and those with a
 * meaning in git.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: git forbids exactly these.
const FORBIDDEN = /[\x00-\x20\x7f~^:?*[\\]/;

/**
 * Returns why git does not accept a branch of this name, completing "git allows no branch name that
 * ..."; undefined when it does. The rules are those of `git check-ref-format` for
 * refs/heads/<name>, and those of `git branch`, which rejects `HEAD` and a leading dash.
 */
export function branchNameProblem(name: string): string | undefined {
  if (name === "") return "is empty";
  if (name.startsWith("-")) return "begins with a dash";
  if (name === "HEAD" || name === "@") return `is ${name}, which git reads as the current commit`;
  if (FORBIDDEN.test(name)) return "has a space, a control character or one of ~ ^ : ? * [ \\";
  if (name.includes("..")) return "has two dots in a row";
  if (name.includes("@{")) return "has @{";
  if (name.endsWith(".")) return "ends with a dot";
  for (const part of name.split("/")) {
    if (part === "") return "begins or ends with a slash, or has two in a row";
    if (part.startsWith(".")) return "has a part that begins with a dot";
    if (part.endsWith(".lock")) return "has a part that ends with .lock";
  }
  return undefined;
}

/** Returns the name of an enum's value as words, such as `Agent execution` for `AGENT_EXECUTION`. */
export function wordsOf(name: string | undefined): string {
  const words = (name ?? "unknown").replaceAll("_", " ").toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

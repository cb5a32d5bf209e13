/** The versions of editors by their names. */
type Editors = Readonly<Record<string, { readonly versions: readonly string[] }>>;

/** Returns editors as lines such as `code: stable, insiders`. */
export const editorsText = (editors: Editors): string =>
  Object.entries(editors)
    .map(([name, { versions }]) => (versions.length === 0 ? name : `${name}: ${versions.join(", ")}`))
    .join("\n");

/** Parses editors from lines as {@link editorsText} writes them. */
export function editorsIn(text: string): Record<string, { versions: string[] }> {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return Object.fromEntries(
    lines.map((line) => {
      const [name = "", ...rest] = line.split(":");
      const versions = rest
        .join(":")
        .split(",")
        .map((each) => each.trim());
      return [name.trim(), { versions: versions.filter((each) => each !== "") }];
    }),
  );
}

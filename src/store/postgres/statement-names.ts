/** Names of statements by their text: a connection parses each once. */
const statementNames = new Map<string, string>();

/** Number of times that statements got new names because the columns of a table had changed. */
let namings = 0;

/** Maximum number of statements that a connection keeps prepared; further texts are parsed each time. */
const MAX_STATEMENTS = 2_000;

/** Returns the name under which connections prepare a text; undefined past the maximum. */
export function statementName(text: string): string | undefined {
  const known = statementNames.get(text);
  if (known !== undefined || statementNames.size >= MAX_STATEMENTS) return known;
  const name = `s${namings}_${statementNames.size}`;
  statementNames.set(text, name);
  return name;
}

/** Gives statements new names, so that each connection parses them again. @param stale the name of one that is stale */
export function renameStatements(stale: string | undefined): void {
  if (!stale?.startsWith(`s${namings}_`)) return;
  statementNames.clear();
  namings += 1;
}

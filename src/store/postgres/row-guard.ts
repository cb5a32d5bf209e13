import type { HeldLocks } from "../held-locks.ts";

/** The parameters of a statement that name the organizations of the rows that it changes. */
interface ChangedRows {
  readonly table: string;
  /** True when the rows are those of new organizations. */
  readonly isCreation: boolean;
  /** Positions in the list of values, from 0. */
  readonly owners: readonly number[];
}

/** Bookkeeping tables that only one job writes, for many organizations at a time, without organization locks. */
const UNGUARDED: ReadonlySet<string> = new Set(["audit_export"]);

/** Parsed statements by their text; undefined for one that changes no rows, or rows whose table has no organization. */
const known = new Map<string, ChangedRows | undefined>();

/** Maximum number of cached texts; further ones are parsed each time. */
const MAX_KNOWN = 2_000;

/**
 * Checks that a statement changes only rows of organizations that its write has locked. Rows without an organization
 * belong to rows that have one, and are reached through them.
 * @throws Error for a row of another organization
 */
export function requireLockedRows(held: HeldLocks, text: string, values: readonly unknown[]): void {
  const changed = changedRows(text);
  if (!changed) return;
  for (const position of changed.owners) {
    const owner = values[position];
    if (changed.isCreation) held.addCreated(String(owner));
    else held.requireRow(typeof owner === "string" ? owner : null, `a row of ${changed.table}`);
  }
}

function changedRows(text: string): ChangedRows | undefined {
  if (known.has(text)) return known.get(text);
  const found = readStatement(text);
  if (known.size < MAX_KNOWN) known.set(text, found);
  return found;
}

function readStatement(text: string): ChangedRows | undefined {
  const [, verb, table] = /^(insert into|update|delete from) "(\w+)"/.exec(text) ?? [];
  if (verb === undefined || table === undefined || UNGUARDED.has(table)) return undefined;
  const column = table === "organization" ? "id" : "organization_id";
  const owners = verb === "insert into" ? insertedOwners(text, column) : namedOwners(text, column);
  if (owners.length === 0) return undefined;
  return { table, isCreation: verb === "insert into" && table === "organization", owners };
}

/** Returns the parameters that a column is compared with. */
function namedOwners(text: string, column: string): number[] {
  return [...text.matchAll(new RegExp(`\\b${column}"? = \\$(\\d+)`, "g"))].map(
    ([, number]) => Number(number) - 1,
  );
}

/** Returns the parameters that are inserted into a column. */
function insertedOwners(text: string, column: string): number[] {
  const [, names = "", rows = ""] = /^insert into "\w+" \(([^)]*)\) values (.*)$/s.exec(text) ?? [];
  const place = names.split(", ").indexOf(`"${column}"`);
  if (place === -1) return [];
  return [...rows.matchAll(/\(((?:\$\d+|null|default|, )+)\)/g)].flatMap(([, row = ""]) => {
    const value = /^\$(\d+)$/.exec(row.split(", ")[place] ?? "")?.[1];
    return value === undefined ? [] : [Number(value) - 1];
  });
}

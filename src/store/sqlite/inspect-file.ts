import { levelProblem } from "../feature-level.ts";
import { openConnection } from "./connection.ts";
import { storageProblem } from "./storage-problem.ts";

/** What the engine found in a file. */
export interface FileReport {
  /** Why it is not a complete database, in words for the operator; undefined when it is one. */
  readonly problem?: string;
  /** Why this release must not use it. */
  readonly level?: string;
}

/**
 * Checks every page of a database file, and whether this release may use it. Read-only; takes seconds for a large
 * file.
 */
export function inspectFile(file: string): FileReport {
  try {
    const { raw, close } = openConnection(file, "reader");
    try {
      const found = raw.prepare<[], string>("pragma quick_check(1)").pluck().get();
      if (found !== "ok") return { problem: `its pages are damaged (${found})` };
      const isMade = raw.prepare("select 1 from sqlite_schema where name = 'installation'").get();
      if (!isMade) return { problem: "it is no database of Chartroom" };
      const columns = raw
        .prepare<[], string>("select name from pragma_table_info('installation')")
        .pluck()
        .all();
      if (!columns.includes("feature_level")) return {};
      const stored = raw.prepare<[], number>("select feature_level from installation").pluck().get();
      const level = levelProblem(stored ?? 0);
      return level === undefined ? {} : { level };
    } finally {
      close();
    }
  } catch (error) {
    return { problem: storageProblem(error) ?? (error as Error).message };
  }
}

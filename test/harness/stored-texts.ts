import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { diffOf } from "../../src/store/record/packed-diff.ts";
import type { AuditLogTable } from "../../src/store/record/record-schema.ts";
import { postgresUrl } from "./postgres-database.ts";
import { tablesOf, withRawData } from "./raw-data.ts";

/**
 * Returns everything that is stored for a data folder, to look for what must not be there: each of its files, each
 * table of its database when that is elsewhere, and what is packed. Bytes are one character each.
 * @returns the content by the path of the file, or by the name of the table
 */
export async function storedTexts(dataDir: string): Promise<Map<string, string>> {
  const files = filesIn(dataDir).map((file) => [file, readFileSync(file).toString("latin1")] as const);
  const tables = postgresUrl() === undefined ? [] : await tableTexts(dataDir);
  return new Map([...files, ...tables, ["packed diffs of audit_log", await packedDiffs(dataDir)]]);
}

async function packedDiffs(dataDir: string): Promise<string> {
  const packed = "select diff, packed_diff from audit_log where packed_diff is not null";
  const rows = await withRawData(dataDir, (raw) =>
    raw.rows<Pick<AuditLogTable, "diff" | "packed_diff">>(packed),
  );
  return rows.map((row) => Buffer.from(diffOf(row)).toString("latin1")).join("\n");
}

/** Returns every file of a folder, at any depth. */
export function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((file) => statSync(file).isFile());
}

function tableTexts(dataDir: string): Promise<(readonly [string, string])[]> {
  return withRawData(dataDir, async (raw) => {
    const texts: (readonly [string, string])[] = [];
    for (const table of await tablesOf(raw)) {
      const values = (await raw.rows(`select * from "${table}"`)).flatMap((row) => Object.values(row));
      texts.push([
        table,
        values.map((value) => (Buffer.isBuffer(value) ? value.toString("latin1") : String(value))).join("\n"),
      ]);
    }
    return texts;
  });
}

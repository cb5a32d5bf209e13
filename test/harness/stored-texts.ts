import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { postgresUrl } from "./postgres-database.ts";
import { tablesOf, withRawData } from "./raw-data.ts";

/**
 * Returns everything that is stored for a data folder, to look for what must not be there: each of its files, and each
 * table of its database when that is elsewhere. Bytes are one character each.
 * @returns the content by the path of the file, or by the name of the table
 */
export async function storedTexts(dataDir: string): Promise<Map<string, string>> {
  const files = filesIn(dataDir).map((file) => [file, readFileSync(file).toString("latin1")] as const);
  return new Map([...files, ...(postgresUrl() === undefined ? [] : await tableTexts(dataDir))]);
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

import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { keysFrom } from "../../src/keys.ts";
import { DATABASE_FILE, openStore } from "../../src/store/sqlite/open.ts";

/** Names the folder of the run's template; not as a setting is named, since commands reject settings that they do not know. */
const VARIABLE = "TEST_DATABASE_TEMPLATE";

/** Creates an empty database of the newest schema, for all tests of a run: to migrate one takes 40 ms, to copy it 1. */
export async function createTemplate(): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), "chartroom-template-"));
  const { audit } = keysFrom(new Uint8Array(32));
  const never = () => {
    throw new Error("a template has no rows with a time or an id");
  };
  await openStore({ dataDir, now: never, newId: never, audit }).close();
  process.env[VARIABLE] = dataDir;
}

/** Removes the template of the run. */
export function removeTemplate(): void {
  const dataDir = process.env[VARIABLE];
  if (dataDir !== undefined) rmSync(dataDir, { recursive: true });
}

/** Puts a copy of the run's template into a data folder. */
export function copyTemplate(dataDir: string): void {
  const template = process.env[VARIABLE];
  if (template !== undefined) copyFileSync(join(template, DATABASE_FILE), join(dataDir, DATABASE_FILE));
}

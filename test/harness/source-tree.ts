import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { temporaryFolder } from "./server.ts";

/**
 * Writes a tree of source files, by path and text, into a folder that is removed after the tests,
 * and returns its root.
 */
export function sourceTree(files: Readonly<Record<string, string>>): string {
  const root = temporaryFolder();
  mkdirSync(join(root, "src"));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

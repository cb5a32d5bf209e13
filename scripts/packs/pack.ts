/**
 * Makes the packages for npm, @chartroom/api and @chartroom/client, and an archive of the .proto files, all in the
 * version of package.json.
 *
 *   npm run pack                 leaves them in ./release
 *   npm run pack -- --to FOLDER
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { packProtos } from "./protos.ts";
import { packTypeScript } from "./typescript.ts";

const root = join(import.meta.dirname, "../..");
const { values: flags } = parseArgs({ options: { to: { type: "string", default: "release" } } });
const to = resolve(root, flags.to);
const scratch = mkdtempSync(join(tmpdir(), "chartroom-pack-"));
try {
  mkdirSync(to, { recursive: true });
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const packs = [
    ...packTypeScript({ root, manifest, scratch, to }),
    packProtos({ root, version: manifest.version, scratch, to }),
  ];
  process.stdout.write(packs.map((pack) => `${pack}\n`).join(""));
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

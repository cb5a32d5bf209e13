import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { packArchive } from "./archive.ts";

/** What a generator reads of this repository. */
const CONTENT = ["proto", "third_party", "buf.yaml", "LICENSE"];

export interface ProtosPlace {
  /** The folder of this repository. */
  readonly root: string;
  readonly version: string;
  readonly scratch: string;
  readonly to: string;
}

/**
 * Makes the archive of the .proto files, in which `buf generate` finds what it does in a checkout. The same files make the
 * same archive.
 * @returns its path
 */
export function packProtos({ root, version, scratch, to }: ProtosPlace): string {
  const title = `chartroom-protos-${version}`;
  mkdirSync(join(scratch, title));
  for (const part of CONTENT) cpSync(join(root, part), join(scratch, title, part), { recursive: true });
  const time = execFileSync("git", ["log", "-1", "--format=%ct", "--", ...CONTENT], { cwd: root });
  const archive = join(scratch, `${title}.tar.gz`);
  packArchive(join(scratch, title), archive, String(time).trim());
  cpSync(archive, join(to, `${title}.tar.gz`));
  return join(to, `${title}.tar.gz`);
}

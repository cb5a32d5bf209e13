import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { createFileRegistry, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

/** The folder of buf.yaml and of this repository. */
export const ROOT = join(import.meta.dirname, "../..");

/** Exit code of buf when a check finds problems; 1 means that it could not run at all. */
export const FINDINGS = 100;

/** The result of a run of buf. */
export interface BufRun {
  readonly code: number | null;
  readonly stdout: Buffer;
  /** Both output streams, to search and to print. */
  readonly text: string;
}

/** Runs buf as CI does, in a folder with a buf.yaml. */
export function buf(args: readonly string[], folder = ROOT): BufRun {
  const run = spawnSync(join(ROOT, "node_modules/.bin/buf"), args, {
    cwd: folder,
    maxBuffer: 64 * 1024 * 1024,
  });
  if (run.error) throw run.error;
  return { code: run.status, stdout: run.stdout, text: `${run.stdout}${run.stderr}` };
}

/** Returns the descriptors of a folder of .proto files as compiled now, with comments and imports. */
export function compile(folder: string): FileRegistry {
  const run = buf(["build", folder, "-o", "-#format=binpb"]);
  if (run.code !== 0) throw new Error(`buf build ${folder} failed: ${run.text}`);
  return createFileRegistry(fromBinary(FileDescriptorSetSchema, run.stdout));
}

import { chmodSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import {
  CodeGeneratorRequestSchema,
  type FileDescriptorProto,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";

/** The request of buf to a code generator. */
export interface GeneratorInput {
  /** Name of the program, such as `protoc-gen-go`. */
  readonly program: string;
  readonly filesToGenerate: readonly string[];
  /** Those files and all their imports. */
  readonly files: readonly FileDescriptorProto[];
  /** Options for a plugin; empty for protoc. */
  readonly parameter: string;
}

/**
 * Records its input and arguments, and prints an empty plugin response, the bytes of
 * `supported_features: 1`.
 */
const SCRIPT = `#!/bin/sh
case "$*" in *--version) echo 'libprotoc 32.0'; exit;; esac
printf '%s\\n' "$@" > "$0.$$.args"
cat > "$0.$$.input"
printf '\\020\\001'
`;

/**
 * Writes fake programs into an empty folder, in place of code generators, protoc and a protoc
 * inside Python: they generate nothing and record their requests.
 */
export function recordingPlugins(folder: string, names: readonly string[]) {
  for (const name of names) {
    writeFileSync(join(folder, name), SCRIPT);
    chmodSync(join(folder, name), 0o755);
  }
  return {
    /** Returns a PATH on which the programs come first. */
    path: (path: string | undefined) => `${folder}${delimiter}${path}`,
    /** Returns the recorded requests, ordered by the name of the program. */
    inputs: () =>
      readdirSync(folder)
        .filter((name) => name.endsWith(".input"))
        .map((name) => readInput(folder, name.slice(0, -".input".length)))
        .sort((one, other) => (one.program < other.program ? -1 : 1)),
  };
}

function readInput(folder: string, run: string): GeneratorInput {
  const program = run.replace(/\.\d+$/, "");
  const args = readFileSync(join(folder, `${run}.args`), "utf8").split("\n");
  const bytes = readFileSync(join(folder, `${run}.input`));
  if (args.some((arg) => arg.startsWith("--descriptor_set_in="))) {
    const filesToGenerate = args.filter((arg) => arg.endsWith(".proto"));
    return {
      program,
      filesToGenerate,
      files: fromBinary(FileDescriptorSetSchema, bytes).file,
      parameter: "",
    };
  }
  const { fileToGenerate, protoFile, parameter } = fromBinary(CodeGeneratorRequestSchema, bytes);
  return { program, filesToGenerate: fileToGenerate, files: protoFile, parameter };
}

import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { packArchive } from "./archive.ts";
import { packProtos } from "./protos.ts";
import { packTypeScript } from "./typescript.ts";

const ROOT = join(import.meta.dirname, "../..");

/** A pack that was not made, and why. */
export interface LeftOut {
  readonly pack: string;
  readonly reason: string;
}

interface Language {
  readonly name: string;
  readonly pack: string;
  /** Returns what is missing on this machine; undefined where nothing is. */
  readonly missing: () => string | undefined;
}

/** Not `import`: that of setuptools fails after that of pip. */
const FINDS_PYTHON_PACKAGES =
  "import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, ('grpc_tools', 'pip', 'setuptools'))))";

/** The languages whose packs take tools in addition to those of npm. */
const LANGUAGES: readonly Language[] = [
  {
    name: "python",
    pack: "the Python package",
    missing: () =>
      missingProgram("python3") ??
      (succeeds("python3", "-c", FINDS_PYTHON_PACKAGES)
        ? undefined
        : "python3 has not all of pip, grpcio-tools and setuptools (docs/clients/python.md)"),
  },
  { name: "go", pack: "the Go module", missing: () => missingProgram("go") ?? olderGo() },
  {
    name: "java",
    pack: "the Maven module",
    missing: () => missingProgram("mvn") ?? missingProgram("javac") ?? missingProgram("jar"),
  },
];

/**
 * Reads the names of `--without`, with commas between them.
 *
 * @throws an error when one of them is no language that can be left out
 */
export function readWithout(text: string): readonly string[] {
  const names = text.split(",").filter((name) => name !== "");
  const known = LANGUAGES.map(({ name }) => name);
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`--without takes ${known.join(", ")}, not ${unknown}`);
  return names;
}

/** Makes the packages for npm and the archive of the .proto files. @returns their paths */
export function packNpm(to: string): readonly string[] {
  const scratch = mkdtempSync(join(tmpdir(), "chartroom-pack-"));
  try {
    mkdirSync(to, { recursive: true });
    const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    return [
      ...packTypeScript({ root: ROOT, manifest, scratch, to }),
      packProtos({ root: ROOT, version: manifest.version, scratch, to }),
    ];
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/**
 * Makes the packs of the other languages, each a file, where this machine has the tools.
 *
 * @param without languages whose pack is not wanted, such as `java`
 * @returns what was left out
 * @throws an error when a tool is there and fails
 */
export function packOthers(to: string, without: readonly string[]): readonly LeftOut[] {
  mkdirSync(to, { recursive: true });
  const leftOut: LeftOut[] = [];
  for (const { name, pack, missing } of LANGUAGES) {
    const reason = without.includes(name) ? `--without ${name}` : missing();
    if (reason !== undefined) leftOut.push({ pack, reason });
    else if (name === "python") runScript(name, to);
    else packFolder(name, to);
  }
  return leftOut;
}

/** Makes a pack that is a folder, and an archive of it with the time of the commit. */
function packFolder(name: string, to: string): void {
  const scratch = mkdtempSync(join(tmpdir(), `chartroom-${name}-`));
  try {
    const folder = runScript(name, scratch);
    const time = execFileSync("git", ["log", "-1", "--format=%ct"], { cwd: ROOT, encoding: "utf8" });
    packArchive(folder, join(to, `${basename(folder)}.tar.gz`), time.trim());
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Runs the script that makes a pack. @returns its path, which the script prints */
function runScript(name: string, to: string): string {
  const args = [join(import.meta.dirname, `${name}.ts`), "--to", to];
  return execFileSync(process.execPath, args, {
    cwd: ROOT,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  }).trim();
}

function missingProgram(program: string): string | undefined {
  const { error } = spawnSync(program, ["--version"], { stdio: "ignore" });
  return error === undefined ? undefined : `there is no ${program} on the PATH`;
}

function succeeds(program: string, ...args: string[]): boolean {
  return spawnSync(program, args, { stdio: "ignore" }).status === 0;
}

/** Returns why the `go` of the PATH does not do: the module takes 1.26. */
function olderGo(): string | undefined {
  const { stdout } = spawnSync("go", ["env", "GOVERSION"], { encoding: "utf8" });
  const [, minor = "0"] = /^go1\.(\d+)/.exec(stdout) ?? [];
  return Number(minor) >= 26 ? undefined : `${stdout.trim() || "this go"} is older than go1.26`;
}

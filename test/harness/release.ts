import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./program.ts";
import { temporaryFolder } from "./server.ts";

/** What a server needs of the sources, and its contract. */
const SOURCES = ["bin", "buf.gen.yaml", "buf.yaml", "gen", "package.json", "proto", "src", "third_party"];

/** What generates code and the OpenAPI document besides packages, and the examples that it reads. */
const GENERATORS = ["scripts/openapi", "test/e2e/golden"];

/** Returns why a commit cannot be taken from the repository's history, as a sentence; undefined where it can. */
export function lackOf(commit: string): string | undefined {
  const { status } = spawnSync("git", ["cat-file", "-e", `${commit}^{commit}`], { cwd: ROOT });
  return status === 0
    ? undefined
    : `the history of this clone lacks ${commit.slice(0, 12)}: git fetch --unshallow`;
}

/** Unpacks the sources of a commit into a folder that is removed after the tests. @returns its path */
export function sourcesOf(commit: string): string {
  const folder = temporaryFolder();
  const archive = execFileSync("git", ["archive", commit, ...SOURCES], {
    cwd: ROOT,
    maxBuffer: 256 * 1024 * 1024,
  });
  execFileSync("tar", ["-x", "-C", folder], { input: archive });
  linkPackages(folder);
  return folder;
}

/**
 * Copies the sources as they are, changed as the next release may change them, and generates the code of its contract.
 * @param changes by file, each with a pattern that is there and what replaces it
 */
export function nextRelease(
  changes: readonly (readonly [file: string, pattern: RegExp, replacement: string])[],
): string {
  const folder = temporaryFolder();
  for (const name of [...SOURCES, ...GENERATORS])
    cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  for (const [name, pattern, replacement] of changes) {
    const file = join(folder, name);
    const text = readFileSync(file, "utf8");
    if (!pattern.test(text)) throw new Error(`${name} has nothing like ${pattern}`);
    writeFileSync(file, text.replace(pattern, replacement));
  }
  linkPackages(folder);
  const programs = join(folder, "node_modules/.bin");
  const PATH = `${programs}:${process.env.PATH}`;
  execFileSync(join(programs, "buf"), ["generate"], {
    cwd: folder,
    env: { ...process.env, PATH },
    stdio: "pipe",
  });
  return folder;
}

/** Links the packages of this tree one by one: what programs keep next to them stays in the folder. */
function linkPackages(folder: string): void {
  const packages = join(ROOT, "node_modules");
  mkdirSync(join(folder, "node_modules"));
  for (const name of readdirSync(packages))
    if (name !== ".cache") symlinkSync(join(packages, name), join(folder, "node_modules", name));
}

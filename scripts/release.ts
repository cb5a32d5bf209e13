/**
 * Makes the release: one folder with Chartroom, its packages and Node, packed for one platform, and the packs of
 * clients next to it.
 *
 *   npm run release -- --dry-run   makes it in a temporary folder, checks it, prints what it holds, and removes it
 *   npm run release                leaves the files in ./release, or in the folder of --to
 *   npm run release -- --allow-changes  takes what is not committed too, and says so in the provenance
 *   npm run release -- --without java   leaves out a pack; of python, go and java several are named with commas
 *
 * Everything in it is from the commit that is checked out and from the packages of package-lock.json.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { packArchive } from "./packs/archive.ts";
import { packNpm, packOthers, readWithout } from "./packs/clients.ts";

const ROOT = join(import.meta.dirname, "..");
const MIB = 1024 * 1024;
/** The most that a release may take: a download of a minute, and a small part of a small machine's disk. */
const MAX_UNPACKED_BYTES = 220 * MIB;
const MAX_PACKED_BYTES = 80 * MIB;

/** What of the sources a running Chartroom, or who runs it, reads. */
const FOLDERS = ["bin", "src", "gen", "proto", "api", "docs", "examples", "third_party"];
const FILES = ["LICENSE", "README.md", "CHANGELOG.md"];

const { values: flags } = parseArgs({
  options: {
    "dry-run": { type: "boolean", default: false },
    "allow-changes": { type: "boolean", default: false },
    to: { type: "string", default: "release" },
    without: { type: "string", default: "" },
  },
});
const say = (text: string) => process.stdout.write(`${text}\n`);
const run = (program: string, ...args: string[]) =>
  execFileSync(program, args, { cwd: ROOT, encoding: "utf8", maxBuffer: 256 * MIB }).trim();

const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
const { name, version } = manifest;
const platform = `${process.platform}-${process.arch}`;
const title = `${name}-${version}-${platform}`;

const changed = run("git", "status", "--porcelain");
const scratch = mkdtempSync(join(tmpdir(), "chartroom-release-"));
try {
  const without = readWithout(flags.without);
  requireReleasable();
  const folder = join(scratch, title);
  mkdirSync(folder);
  say(`${title}, from ${run("git", "rev-parse", "HEAD")}${changed === "" ? "" : ", with changes"}`);
  copySources(folder);
  copyManifest(folder);
  say("the console");
  run(process.execPath, "console/build.js");
  cpSync(join(ROOT, "console/dist"), join(folder, "console/dist"), { recursive: true });
  say("packages, without those of development");
  const packages = copyPackages(folder);
  const list = sbom(folder);
  say("Node");
  moveNode(folder);
  writeLauncher(folder);
  const unpacked = bytesIn(folder);
  const made = join(scratch, "made");
  mkdirSync(made);
  writeFileSync(join(made, `${title}.cdx.json`), list);
  writeFileSync(join(made, `${title}.provenance.json`), provenance());
  say("packing");
  const archive = join(made, `${title}.tar.gz`);
  packArchive(folder, archive, run("git", "log", "-1", "--format=%ct"));
  report({ unpacked, packed: statSync(archive).size, packages });
  say("packs of clients");
  packNpm(made);
  const leftOut = packOthers(made, without);
  for (const { pack, reason } of leftOut) say(`  without ${pack}: ${reason}`);
  writeFileSync(join(made, "SHA256SUMS"), sums(made));
  for (const file of readdirSync(made).sort()) say(`  ${sizeOf(join(made, file))}  ${file}`);
  if (flags["dry-run"]) say("dry run: nothing is left");
  else {
    const target = resolve(ROOT, flags.to);
    mkdirSync(target, { recursive: true });
    for (const file of readdirSync(made)) cpSync(join(made, file), join(target, file));
    say(`in ${target}`);
  }
} catch (error) {
  process.stderr.write(`release: ${(error as Error).message}\n`);
  process.exitCode = 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

function requireReleasable(): void {
  if (changed !== "" && !flags["dry-run"] && !flags["allow-changes"])
    throw new Error(`commit or remove first:\n${changed}`);
  const changelog = readFileSync(join(ROOT, "CHANGELOG.md"), "utf8");
  if (!["Unreleased", version].some((part) => changelog.includes(`\n## ${part}\n`)))
    throw new Error(`CHANGELOG.md has neither a part "${version}" nor "Unreleased"`);
}

/** Copies the files that git knows, without tests. */
function copySources(folder: string): void {
  const known = run("git", "ls-files", "--cached", "--others", "--exclude-standard", ...FOLDERS, ...FILES);
  for (const file of known.split("\n")) {
    if (file.endsWith(".test.ts") || !existsSync(join(ROOT, file))) continue;
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    cpSync(join(ROOT, file), join(folder, file));
  }
}

/** Copies what Node reads of package.json, and npm for the list of packages. */
function copyManifest(folder: string): void {
  const { devDependencies, scripts, allowScripts, ...kept } = manifest;
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(kept, null, 2)}\n`);
}

/** Copies the packages that run, each without what only other platforms or compilers read. @returns their number */
function copyPackages(folder: string): number {
  const list = run("npm", "ls", "--omit=dev", "--all", "--parseable").split("\n").slice(1);
  const paths = list.map((path) => relative(ROOT, path)).filter((path) => path.startsWith("node_modules/"));
  for (const path of paths) {
    cpSync(join(ROOT, path), join(folder, path), {
      recursive: true,
      // Packages inside of this one are in the list themselves.
      filter: (source) => isNeeded(relative(join(ROOT, path), source)),
    });
  }
  return paths.length;
}

function isNeeded(path: string): boolean {
  if (path.split("/").includes("node_modules")) return false;
  // Node runs no TypeScript of packages.
  if (/\.([cm]?ts|map|tsbuildinfo)$/.test(path)) return false;
  // Sources of the engine, which is there compiled, and headers for compilers.
  if (/^(deps|binding\.gyp|include|share)(\/|$)/.test(path)) return false;
  return !/^prebuilds\/.+\.node$/.test(path) || basename(path) === `${platform}.node`;
}

/** Puts Node itself where the launcher finds it, and leaves nothing of its package but the licence. */
function moveNode(folder: string): void {
  const own = join(folder, "node_modules", `node-${platform}`);
  if (!existsSync(own)) throw new Error(`there is no node_modules/node-${platform}: npm ci installs it`);
  mkdirSync(join(folder, "node/bin"), { recursive: true });
  renameSync(join(own, "bin/node"), join(folder, "node/bin/node"));
  cpSync(join(own, "LICENSE"), join(folder, "node/LICENSE"));
  rmSync(own, { recursive: true });
}

/** Writes the program that runs Chartroom with the release's own Node, by whatever link it is called. */
function writeLauncher(folder: string): void {
  const launcher = join(folder, "bin/chartroom");
  writeFileSync(
    launcher,
    `#!/bin/sh
root=$(dirname "$(dirname "$(readlink -f "$0")")")
# A server's young memory is small, so that it is collected often and stays small.
case "$1" in serve) set -- --max-semi-space-size=16 "$root/bin/chartroom.js" "$@" ;; *) set -- "$root/bin/chartroom.js" "$@" ;; esac
exec "$root/node/bin/node" "$@"
`,
  );
  chmodSync(launcher, 0o755);
}

/** Returns the list of the packages in the folder, in CycloneDX: asked there, npm lists what is there. */
function sbom(folder: string): string {
  return execFileSync("npm", ["sbom", "--sbom-format=cyclonedx"], { cwd: folder, encoding: "utf8" });
}

function provenance(): string {
  const hash = (file: string) =>
    createHash("sha256")
      .update(readFileSync(join(ROOT, file)))
      .digest("hex");
  return `${JSON.stringify(
    {
      name,
      version,
      platform,
      commit: run("git", "rev-parse", "HEAD"),
      committedAt: run("git", "log", "-1", "--format=%cI"),
      hasUncommittedChanges: changed !== "",
      node: process.version,
      packageLockSha256: hash("package-lock.json"),
      how: "npm ci --ignore-scripts && npm run release",
    },
    null,
    2,
  )}\n`;
}

function sums(folder: string): string {
  const line = (file: string) =>
    `${createHash("sha256")
      .update(readFileSync(join(folder, file)))
      .digest("hex")}  ${file}\n`;
  return readdirSync(folder).sort().map(line).join("");
}

/** Returns the size of a file in KiB, in a column. */
function sizeOf(file: string): string {
  return `${Math.ceil(statSync(file).size / 1024)} KiB`.padStart(9);
}

function bytesIn(folder: string): number {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return files.reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
}

function report(facts: {
  readonly unpacked: number;
  readonly packed: number;
  readonly packages: number;
}): void {
  const mib = (bytes: number) => `${Math.ceil(bytes / MIB)} MiB`;
  say(`${facts.packages} packages; unpacked ${mib(facts.unpacked)}, packed ${mib(facts.packed)}`);
  if (facts.unpacked > MAX_UNPACKED_BYTES)
    throw new Error(`it takes more than ${mib(MAX_UNPACKED_BYTES)} unpacked`);
  if (facts.packed > MAX_PACKED_BYTES) throw new Error(`it takes more than ${mib(MAX_PACKED_BYTES)} packed`);
}

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** What of package.json the packages have too. */
export interface RootManifest {
  readonly version: string;
  readonly license: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

export interface PackPlace {
  /** The folder of this repository. */
  readonly root: string;
  readonly manifest: RootManifest;
  /** An empty folder in which the packages are put together. */
  readonly scratch: string;
  /** Where the packs go. */
  readonly to: string;
}

/** How sources name what another package has, and how its users do. */
const IMPORTS: readonly (readonly [RegExp, string])[] = [
  [/"#gen\/([^"]+)"/g, '"@chartroom/api/$1"'],
  [/"(?:\.\.\/)+api\/src\/([\w-]+)\.[jt]s"/g, '"@chartroom/api/$1.js"'],
  // The compiler does so in code, but not in declarations.
  [/(from "\.\/[\w-]+)\.ts"/g, '$1.js"'],
];

/**
 * Makes @chartroom/api and @chartroom/client: JavaScript with declarations, for Node 20 and browsers.
 * @returns the paths of the packs
 */
export function packTypeScript(place: PackPlace): string[] {
  const { root, manifest, scratch } = place;
  const compiled = join(scratch, "compiled");
  const options = ["-p", "packages", "--noEmit", "false", "--declaration", "--outDir", compiled];
  execFileSync(join(root, "node_modules/.bin/tsc"), options, { cwd: root, stdio: "inherit" });
  const api = join(scratch, "api");
  for (const part of ["service", "runner"]) {
    cpSync(join(root, "gen", part), join(api, part), { recursive: true });
  }
  for (const part of ["proto", "third_party", "buf.yaml"]) {
    cpSync(join(root, part), join(api, part), { recursive: true });
  }
  cpSync(join(root, "gen/openapi.json"), join(api, "openapi.json"));
  const contract = ["build", "proto", "--exclude-source-info", "-o", join(api, "contract.binpb")];
  execFileSync(join(root, "node_modules/.bin/buf"), contract, { cwd: root });
  return ["api", "client"].map((name) => {
    const folder = join(scratch, name);
    mkdirSync(folder, { recursive: true });
    copyCompiled(join(compiled, "packages", name, "src"), folder);
    const own = JSON.parse(readFileSync(join(root, "packages", name, "manifest.json"), "utf8"));
    writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifestOf(own, manifest), null, 2)}\n`);
    cpSync(join(root, "packages", name, "README.md"), join(folder, "README.md"));
    cpSync(join(root, "LICENSE"), join(folder, "LICENSE"));
    return packFolder(folder, place.to);
  });
}

function copyCompiled(from: string, to: string): void {
  for (const name of readdirSync(from)) {
    const code = readFileSync(join(from, name), "utf8");
    writeFileSync(
      join(to, name),
      IMPORTS.reduce((text, [pattern, replacement]) => text.replaceAll(pattern, replacement), code),
    );
  }
}

/** Gives a package the version of the server, and its dependencies from those with which it was tried on. */
function manifestOf(
  { dependencies, ...own }: { readonly dependencies: readonly string[] },
  manifest: RootManifest,
) {
  const { version, license } = manifest;
  const used = { ...manifest.devDependencies, ...manifest.dependencies };
  const versionOf = (name: string) => {
    if (name.startsWith("@chartroom/")) return version;
    if (used[name] === undefined) throw new Error(`package.json has no ${name}`);
    return `^${used[name]}`;
  };
  return {
    ...own,
    version,
    license,
    engines: { node: ">=20" },
    dependencies: Object.fromEntries(dependencies.map((name) => [name, versionOf(name)])),
  };
}

function packFolder(folder: string, to: string): string {
  const options = ["pack", "--json", "--ignore-scripts", "--pack-destination", to];
  // npm resets the colours of a terminal on its standard error; when it fails, the error has what it wrote there.
  const report = execFileSync("npm", options, { cwd: folder, encoding: "utf8", stdio: "pipe" });
  const [{ filename }] = JSON.parse(report);
  return join(to, filename.replace(/^@/, "").replace("/", "-"));
}

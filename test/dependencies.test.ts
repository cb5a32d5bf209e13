import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";

const root = join(import.meta.dirname, "..");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const page = readFileSync(join(root, "docs/dependencies.md"), "utf8");
const used = {
  ...manifest.dependencies,
  ...manifest.optionalDependencies,
  ...manifest.devDependencies,
} as Record<string, string>;

/** An entry of package-lock.json, as far as these tests read it. */
interface LockedPackage {
  readonly version: string;
  readonly integrity?: string;
  readonly hasInstallScript?: boolean;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly os?: string;
  readonly cpu?: string;
  readonly bin?: Readonly<Record<string, string>>;
}

const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
/** The packages of the lock file by name; nested copies keep the whole path of their folder. */
const locked = new Map(
  Object.entries(lock.packages as Record<string, LockedPackage>)
    .filter(([path]) => path !== "")
    .map(([path, entry]) => [path.replace(/^node_modules\//, ""), entry]),
);

describe("dependencies", () => {
  test("each one has a reason on the page, and the page names no others", () => {
    const named = [...page.matchAll(/^\| (\S+) \| .{4,} \|$/gm)].map((match) => match[1]);
    expect(named.filter((name) => name !== "package" && name !== "---").sort()).toEqual(
      Object.keys(used).sort(),
    );
  });

  test("each one is pinned exactly", () => {
    expect(
      Object.entries(used).filter(([, version]) => !/^\d+\.\d+\.\d+(-[a-z]+\.\d+)?$/.test(version)),
    ).toEqual([]);
  });

  test("each package of the lock file has an integrity", () => {
    const unpinned = [...locked].filter(([, { integrity }]) => !integrity?.startsWith("sha512-"));
    expect(unpinned.map(([name]) => name)).toEqual([]);
  });

  test("no package needs its install script, and each one that has a script is named with false", () => {
    const withScript = [...locked].filter(([, { hasInstallScript }]) => hasInstallScript);
    const names = withScript.map(([path]) => path.replace(/^.*node_modules\//, ""));
    // npm makes a script up for a package with a binding.gyp, which the lock file does not tell.
    const expected = [...names, "better-sqlite3"].map((name) => [name, false]);
    expect(manifest.allowScripts).toEqual(Object.fromEntries(expected));
  });

  test("those that the server imports are installed without the development packages", () => {
    const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
      .map((name) => readFileSync(join(root, "src", name), "utf8"));
    const imported = sources.flatMap((text) =>
      [
        ...text.matchAll(
          /(?:^(?:import|export|\}).*from |\bimport\()"((?:@[\w.-]+\/)?[a-z][\w-]*)[^":]*"\)?;$/gm,
        ),
      ].map(([, name]) => name ?? ""),
    );
    expect([...new Set(imported)].toSorted()).toEqual(Object.keys(manifest.dependencies).toSorted());
  });
});

describe("the Node that Chartroom runs on", () => {
  const platforms = Object.keys(manifest.optionalDependencies ?? {})
    .map((name) => [name, locked.get(name)] as const)
    .map(([name, entry]) => ({ name, entry, platform: `${entry?.os}-${entry?.cpu}` }));

  test("comes as one package for each platform", () => {
    expect(platforms.map(({ platform }) => platform).toSorted()).toEqual([
      "darwin-arm64",
      "darwin-x64",
      "linux-arm64",
      "linux-x64",
    ]);
  });

  test.each(platforms)(
    "$name brings the program node, without and with development packages",
    ({ entry, name }) => {
      expect(entry).toMatchObject({ bin: { node: "bin/node" }, optional: true, version: used[name] });
      expect(entry?.dev).toBeUndefined();
    },
  );

  test("has one version on Linux, which runs these tests", () => {
    const linux = platforms.filter(({ entry }) => entry?.os === "linux");
    expect(linux.map(({ entry }) => entry?.version)).toEqual(linux.map(() => "24.21.0"));
  });

  test("may be newer than the one that npm runs on: the manifest asks for what `npm ci` needs", () => {
    const readme = readFileSync(join(root, "README.md"), "utf8");
    const asked = /Needs git, Node (\d+) or newer/.exec(readme)?.[1];
    expect(manifest.engines).toEqual({ node: `>=${asked}` });
  });
});

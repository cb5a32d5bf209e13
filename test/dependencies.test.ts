import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";

const root = join(import.meta.dirname, "..");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const page = readFileSync(join(root, "docs/dependencies.md"), "utf8");
const used = { ...manifest.dependencies, ...manifest.devDependencies } as Record<string, string>;

describe("dependencies", () => {
  test("each one has a reason on the page, and the page names no others", () => {
    const named = [...page.matchAll(/^\| (\S+) \| .{4,} \|$/gm)].map((match) => match[1]);
    expect(named.filter((name) => name !== "package" && name !== "---").sort()).toEqual(
      Object.keys(used).sort(),
    );
  });

  test("each one is pinned exactly", () => {
    expect(Object.entries(used).filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
  });
});

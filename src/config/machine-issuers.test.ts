import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "@jest/globals";
import { readMachineIssuers } from "./machine-issuers.ts";
import { ConfigError } from "./settings.ts";

const folder = mkdtempSync(join(tmpdir(), "chartroom-issuers-"));
afterAll(() => rmSync(folder, { recursive: true }));

const GOOD = { issuer: "https://ci.example.org", audiences: ["chartroom"] };

function read(file: unknown) {
  const path = join(folder, "issuers.json");
  writeFileSync(path, typeof file === "string" ? file : JSON.stringify(file));
  return readMachineIssuers(path);
}

function problemsOf(file: unknown): readonly string[] {
  try {
    read(file);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map((each) => each.replace(/^.*json: /, ""));
    throw error;
  }
  return [];
}

test("reads issuers with their defaults, and nothing without a file", () => {
  expect(readMachineIssuers("")).toEqual([]);
  expect(read({ issuers: [GOOD] })).toEqual([
    { ...GOOD, maxSeconds: 3_600, mayOutlive: false, allowPrivateAddresses: false },
  ]);
  const all = { ...GOOD, maxSeconds: 60, outliveToken: true, privateAddresses: true };
  expect(read({ issuers: [all] })).toEqual([
    { ...GOOD, maxSeconds: 60, mayOutlive: true, allowPrivateAddresses: true },
  ]);
});

test.each<[string, object, RegExp]>([
  ["an issuer over plain http", { issuer: "http://ci.example.org" }, /^issuers\[0\]\.issuer must be https/],
  ["an issuer with a query", { issuer: "https://ci.example.org?x" }, /without query/],
  ["no audience", { audiences: [] }, /audiences must list 1 to 20/],
  ["21 audiences", { audiences: Array.from({ length: 21 }, (_, each) => `a${each}`) }, /1 to 20/],
  ["an audience with a blank", { audiences: ["a b"] }, /without blanks/],
  ["less than a minute", { maxSeconds: 59 }, /maxSeconds must be a whole number from 60 to 3600/],
  ["more than an hour", { maxSeconds: 3_601 }, /from 60 to 3600/],
  ["a text for a truth value", { outliveToken: "yes" }, /must be true or false/],
  ["another field", { claims: {} }, /claims is not known/],
])("says what is wrong with %s", (_, change, problem) => {
  expect(problemsOf({ issuers: [{ ...GOOD, ...change }] })).toEqual([expect.stringMatching(problem)]);
});

test("takes 20 issuers, each once, and a file that is there", () => {
  const issuers = (count: number) =>
    Array.from({ length: count }, (_, each) => ({ ...GOOD, issuer: `https://ci${each}.example.org` }));
  expect(read({ issuers: issuers(20) })).toHaveLength(20);
  expect(problemsOf({ issuers: issuers(21) })).toEqual(["issuers: at most 20"]);
  expect(problemsOf({ issuers: [GOOD, GOOD] })).toEqual(["issuers: every issuer must be another one"]);
  expect(problemsOf("{")).toEqual([expect.stringMatching(/cannot be read as JSON/)]);
  expect(() => readMachineIssuers(join(folder, "none.json"))).toThrow(ConfigError);
});

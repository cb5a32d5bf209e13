import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { hasColours, showPaged } from "./pager.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pager-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Shows a text; returns what was printed, and the pager's input and LESS variable. */
async function shown(text: string, env: Record<string, string>, isTerminal = true) {
  let printed = "";
  const output = {
    env: { PATH: process.env.PATH, ...env },
    isTerminal,
    print: (part: string) => {
      printed += part;
    },
  };
  await showPaged(text, output);
  const read = (name: string) => {
    try {
      return readFileSync(join(folder, name), "utf8");
    } catch {
      return undefined;
    }
  };
  return { printed, paged: read("paged"), less: read("less") };
}
const pager = () => `printf %s "$LESS" > ${folder}/less; cat > ${folder}/paged`;

describe("a text", () => {
  test("is shown on a terminal by the pager of the first variable that is set", async () => {
    const env = { CHARTROOM_PAGER: pager(), GIT_PAGER: "false", PAGER: "false" };
    expect(await shown("text\n", env)).toEqual({ printed: "", paged: "text\n", less: "FRX" });
    expect((await shown("other\n", { GIT_PAGER: pager(), PAGER: "false" })).paged).toBe("other\n");
    expect((await shown("third\n", { PAGER: pager(), LESS: "S" })).less).toBe("S");
  });

  test("is printed where there is no terminal, no pager or no such program", async () => {
    const printed = { printed: "text\n", paged: undefined, less: undefined };
    expect(await shown("text\n", { CHARTROOM_PAGER: pager() }, false)).toEqual(printed);
    for (const none of ["", "cat", "there-is-no-such-program 2> /dev/null"])
      expect(await shown("text\n", { CHARTROOM_PAGER: none })).toEqual(printed);
  });

  test("is shown until the pager ends: interrupts are the pager's", async () => {
    const calls: string[] = [];
    const ignoreInterrupts = () => {
      calls.push("ignored");
      return () => void calls.push(`heeded, read ${readFileSync(join(folder, "paged"), "utf8")}`);
    };
    const env = { PATH: process.env.PATH, PAGER: pager() };
    await showPaged("text\n", { env, isTerminal: true, print: () => undefined, ignoreInterrupts });
    expect(calls).toEqual(["ignored", "heeded, read text\n"]);
  });

  test("may be longer than a pager reads", async () => {
    expect((await shown("line\n".repeat(1_000_000), { PAGER: "head -c 1 > /dev/null" })).printed).toBe("");
  });
});

test("colours are for terminals, unless they are not wanted", () => {
  expect(hasColours({ env: {}, isTerminal: true })).toBe(true);
  expect(hasColours({ env: {}, isTerminal: false })).toBe(false);
  expect(hasColours({ env: { NO_COLOR: "1" }, isTerminal: true })).toBe(false);
  expect(hasColours({ env: { TERM: "dumb" }, isTerminal: true })).toBe(false);
});

import { expect, test } from "@jest/globals";
import { table } from "./table.ts";

const ID = "01234567-89ab-7def-8123-456789abcdef";
const TIME = "2026-11-28 07:30:00";
const NAME = "A project whose name is longer than what is left of a line";
const HEADINGS = ["PROJECT", "CREATED (UTC)", "NAME"];
const ROWS = [
  [ID, TIME, NAME],
  [ID, TIME, "short"],
];
const linesAt = (maxWidth?: number) => table(HEADINGS, ROWS, maxWidth).trimEnd().split("\n");

test("a table for no terminal, or for one where it fits, is whole", () => {
  expect(linesAt()[1]).toBe(`${ID}  ${TIME}  ${NAME}`);
  expect(linesAt(200)).toEqual(linesAt());
});

test("where it does not fit, the longest text is shortened", () => {
  const lines = linesAt(80);
  expect(lines[0]).toBe(`PROJECT${" ".repeat(31)}CREATED (UTC)        NAME`);
  expect(lines[1]).toBe(`${ID}  ${TIME}  ${NAME.slice(0, 20)}…`);
  expect(lines[2]).toBe(`${ID}  ${TIME}  short`);
  expect(Math.max(...lines.map((line) => line.length))).toBe(80);
});

test("the last text is shortened to ten characters before rows take two lines", () => {
  const row = [ID, "administrator", "admin@localhost", "Administrator"];
  const lines = (maxWidth: number) => table(["USER", "ROLE", "EMAIL", "NAME"], [row], maxWidth).split("\n");
  expect(lines(83)[1]).toBe(row.join("  "));
  expect(lines(80)[1]).toBe(`${row.slice(0, 3).join("  ")}  Administr…`);
  expect(lines(79)).toHaveLength(5);
});

test("in a narrow terminal each row goes on below, and ids and times stay whole", () => {
  expect(linesAt(40)).toEqual([
    "PROJECT",
    "    CREATED (UTC)",
    "    NAME",
    ID,
    `    ${TIME}`,
    `    ${NAME.slice(0, 35)}…`,
    ID,
    `    ${TIME}`,
    "    short",
  ]);
  expect(table(["NAME", "ID"], [[NAME.slice(0, 9), ID]], 30)).toBe(
    `NAME\n    ID\n${NAME.slice(0, 9)}\n    ${ID}\n`,
  );
});

test("a row without the last values takes no lines for them", () => {
  expect(table(["RUN", "PHASE", "FAILURE"], [[ID, "running", ""]], 40)).toBe(
    `RUN\n    PHASE    FAILURE\n${ID}\n    running\n`,
  );
});

import { expect, test } from "@jest/globals";
import { Turns } from "./agent-turns.ts";

test("an input begins a turn, and what comes before its end joins it", () => {
  const turns = new Turns();
  expect([turns.isOpen, turns.inputId]).toEqual([false, ""]);
  expect(turns.addInput("one")).toBe(true);
  expect(turns.addInput("two")).toBe(false);
  expect([turns.confirmInput("two"), turns.confirmInput("one"), turns.confirmInput("one")]).toEqual([
    true,
    true,
    false,
  ]);
  expect([turns.isOpen, turns.inputId]).toEqual([true, "one"]);
  expect(turns.end()).toBe("waits");
  expect([turns.isOpen, turns.inputId]).toEqual([false, "one"]);
});

test("what a turn did not get begins the next one", () => {
  const turns = new Turns();
  for (const id of ["one", "two", "three"]) turns.addInput(id);
  turns.confirmInput("one");
  expect([turns.end(), turns.inputId, turns.isOpen]).toEqual(["goes-on", "two", true]);
  turns.confirmInput("two");
  turns.confirmInput("three");
  expect(turns.end()).toBe("waits");
});

test("a turn does not end before its input is confirmed, and the end of none is a wait", () => {
  const turns = new Turns();
  expect(turns.end()).toBe("waits");
  turns.addInput("one");
  expect([turns.end(), turns.end(), turns.isOpen]).toEqual(["unconfirmed", "unconfirmed", true]);
  turns.confirmInput("one");
  expect(turns.end()).toBe("waits");
});

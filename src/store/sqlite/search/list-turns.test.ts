import { expect, test } from "@jest/globals";
import { ListScheduler } from "./list-turns.ts";

const of = (organizationId: string, callerId = "c") => ({ organizationId, callerId });
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

test("a turn of the event loop has time for some queries; the others wait for the next ones, by their owners' turns", async () => {
  let now = 0;
  const turns = new ListScheduler(() => now);
  const done: string[] = [];
  const ask = (name: string, ms: number) =>
    turns.run(of(name.charAt(0)), () => {
      now += ms;
      done.push(name);
      return name;
    });
  const asked = ["a1", "a2", "a3", "a4", "b1"].map((name) => ask(name, 5));
  expect(done).toEqual(["a1", "a2"]);
  await nextTurn();
  expect(done).toEqual(["a1", "a2", "a3", "b1"]);
  await nextTurn();
  expect(await Promise.all(asked)).toEqual(["a1", "a2", "a3", "a4", "b1"]);
});

test("a query that fails fails alone", async () => {
  const turns = new ListScheduler();
  const failing = turns.run(of("a"), () => {
    throw new Error("no such table");
  });
  const other = turns.run(of("a"), () => 7);
  await expect(failing).rejects.toThrow("no such table");
  expect(await other).toBe(7);
});

import { expect, test } from "@jest/globals";
import { HELP, parseTypedLine } from "./typed-line.ts";

test.each([
  ["", { kind: "nothing" }],
  ["  ", { kind: "nothing" }],
  [" say hello ", { kind: "message", text: "say hello" }],
  ["//etc is a folder", { kind: "message", text: "/etc is a folder" }],
  ["/queue", { kind: "queue" }],
  ["/inputs ", { kind: "inputs" }],
  ["/steer ab", { kind: "steer", id: "ab" }],
  ["/delete ab", { kind: "delete", id: "ab" }],
  ["/move ab", { kind: "move", id: "ab", beforeId: "" }],
  ["/move ab  cd", { kind: "move", id: "ab", beforeId: "cd" }],
  ["/goal win the game", { kind: "set-goal", objective: "win the game" }],
  ["/goal pause", { kind: "goal", action: "pause" }],
  ["/goal clear the table", { kind: "set-goal", objective: "clear the table" }],
  ["/compact", { kind: "compact" }],
  ["/retry", { kind: "retry" }],
  ["/go-on", { kind: "go-on" }],
  ["/stop", { kind: "stop" }],
  ["/leave", { kind: "leave" }],
  ["/help", { kind: "help" }],
])("%j is %j", (line, wanted) => {
  expect(parseTypedLine(line)).toEqual(wanted);
});

test.each([
  "/",
  "/nothing",
  "/queue now",
  "/steer",
  "/steer a b",
  "/delete",
  "/move",
  "/move a b c",
  "/goal",
])("%j is a mistake", (line) => {
  expect(parseTypedLine(line)).toMatchObject({ kind: "mistake" });
});

test("the help names every order", () => {
  for (const order of HELP.matchAll(/^ {2}(\/[\w-]+)/gm)) {
    expect(parseTypedLine(`${order[1]} x`)).not.toMatchObject({ why: expect.stringMatching(/there is no/) });
  }
  for (const name of [
    "queue",
    "inputs",
    "steer",
    "delete",
    "move",
    "goal",
    "compact",
    "retry",
    "go-on",
    "stop",
    "leave",
  ]) {
    expect(HELP).toContain(`/${name}`);
  }
});

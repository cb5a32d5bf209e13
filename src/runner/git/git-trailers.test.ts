import { describe, expect, test } from "@jest/globals";
import { type CommitTrailers, mayReplace, messageWithTrailers, parseTrailers } from "./git-trailers.ts";

const OWN: CommitTrailers = { workflowId: "w", executionId: "e2", actionId: "a2" };
const EARLIER: CommitTrailers = { workflowId: "w", executionId: "e1", actionId: "a1" };
const SIBLING: CommitTrailers = { ...OWN, actionId: "a3" };
const STRANGER: CommitTrailers = { workflowId: "v", executionId: "e3", actionId: "a4" };
const PERSON = parseTrailers("\t\t");

describe("what a push may take from a branch", () => {
  test.each<[string, CommitTrailers[], boolean]>([
    ["what an attempt before made", [OWN], true],
    ["what an attempt before made over commits of its step", [OWN, PERSON], true],
    ["what an earlier execution made", [EARLIER], true],
    ["what several earlier executions made", [{ ...EARLIER, executionId: "e0" }, EARLIER], true],
    ["what an earlier execution made over commits of a person", [EARLIER, PERSON], false],
    ["a person's commit over that of the workflow", [PERSON, EARLIER], false],
    ["a person's commit over that of the action", [PERSON, OWN], false],
    ["what another action of the execution made", [SIBLING], false],
    ["what another action of the execution made over an earlier one", [SIBLING, EARLIER], false],
    ["what another workflow made", [STRANGER], false],
  ])("%s: %p", (_, lost, expected) => {
    expect(mayReplace(lost, OWN)).toBe(expected);
  });
});

test("the trailers are at the end of a message, after an empty line", () => {
  const trailers = "Chartroom-Workflow: w\nChartroom-Execution: e2\nChartroom-Action: a2\n";
  expect(messageWithTrailers("Title", OWN)).toBe(`Title\n\n${trailers}`);
  expect(messageWithTrailers("Title\n\nSigned-off-by: Ada\n\n\n", OWN)).toBe(
    `Title\n\nSigned-off-by: Ada\n\n${trailers}`,
  );
});

import { expect, test } from "@jest/globals";
import { argumentWords } from "./argument-words.ts";

test.each([
  ["must be at least 3 characters [name]", "the name must have at least 3 characters: give a longer one"],
  ["must be at most 127 characters [name]", "the name must have at most 127 characters: give a shorter one"],
  ["must be at least 1 characters [name]", "the name must not be empty"],
  ["value is required [reason]", "the reason must not be empty"],
  [
    "must be a valid UUID [filter.projectIds[0]]",
    "the project must be an id: chartroom project list shows the ids",
  ],
  ["must be a valid UUID [environmentClassId]", "--class must be an id"],
  [
    'must not be empty [spec.env["A;B"]]; must be a kind of events, such as project.* [eventKinds[0]]',
    "the env must not be empty; --event must be a kind of events, such as project.*",
  ],
  ["remote URI must be a URI [initializer.specs[0].git.remoteUri]", "remote URI must be a URI"],
  ["the branch [main] is protected", "the branch [main] is protected"],
  ["must be at least 3 characters [name]; and 4 more", "must be at least 3 characters [name]; and 4 more"],
])("%s", (message, words) => {
  expect(argumentWords(message)).toBe(words);
});

test("an argument that is known has its name", () => {
  expect(argumentWords("must be at least 3 characters [name]", "--name")).toBe(
    "--name must have at least 3 characters: give a longer one",
  );
});

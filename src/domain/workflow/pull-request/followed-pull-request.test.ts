import { create } from "@bufbuild/protobuf";
import { expect, test } from "@jest/globals";
import { EnvironmentInitializerSchema } from "#gen/service/v1/environment_pb.js";
import {
  failureDelayMs,
  followingDelayMs,
  placeOfPullRequest,
  readingTimeAfterEvent,
} from "./followed-pull-request.ts";

const MINUTE_MS = 60_000;

const gitOf = (remoteUri: string) =>
  create(EnvironmentInitializerSchema, { specs: [{ spec: { case: "git", value: { remoteUri } } }] });
const pageOf = (url: string) =>
  create(EnvironmentInitializerSchema, { specs: [{ spec: { case: "contextUrl", value: { url } } }] });

const HARBOUR = {
  host: "git.example.org",
  repository: "Team/Harbour",
  identity: "git.example.org/team/harbour",
};

test.each([
  [gitOf("https://git.example.org/Team/Harbour.git"), "https://git.example.org/Team/Harbour/pull/7", HARBOUR],
  [gitOf("git@git.example.org:Team/Harbour.git"), "https://git.example.org/Team/Harbour/pulls/7", HARBOUR],
  [pageOf("https://git.example.org/Team/Harbour/tree/main"), "https://x.example.org/o/r/pull/7/", HARBOUR],
  [
    gitOf("http://127.0.0.1:3000/a/b/c"),
    "https://lab.example.org/a/b/c/-/merge_requests/7",
    { host: "127.0.0.1:3000", repository: "a/b/c", identity: "127.0.0.1:3000/a/b/c" },
  ],
])("a pull request is in the repository of its work", (initializer, url, place) => {
  expect(placeOfPullRequest(initializer, url)).toEqual({ ...place, number: 7 });
});

test.each([
  [gitOf("https://git.example.org/Team/Harbour.git"), "https://git.example.org/Team/Harbour/pull/0"],
  [gitOf("https://git.example.org/Team/Harbour.git"), "https://git.example.org/Team/Harbour/issues/7"],
  [gitOf("https://git.example.org/Team/Harbour.git"), "7"],
  [gitOf("file:///srv/git/harbour.git"), "https://git.example.org/Team/Harbour/pull/7"],
  [gitOf("https://git.example.org/harbour.git"), "https://git.example.org/Team/Harbour/pull/7"],
  [create(EnvironmentInitializerSchema, {}), "https://git.example.org/Team/Harbour/pull/7"],
  [gitOf(`https://${"h".repeat(254)}/o/r`), "https://git.example.org/Team/Harbour/pull/7"],
  [undefined, "https://git.example.org/Team/Harbour/pull/7"],
])("where work or URL names none, there is no place", (initializer, url) => {
  expect(placeOfPullRequest(initializer, url)).toBeUndefined();
});

test("a reading follows after a tenth of the time without a change, from a minute to an hour", () => {
  for (const [unchanged, delay] of [
    [0, 1],
    [9, 1],
    [10, 1],
    [20, 2],
    [599, 59.9],
    [600, 60],
    [100_000, 60],
  ] as const) {
    expect(followingDelayMs(unchanged * MINUTE_MS)).toBe(delay * MINUTE_MS);
  }
});

test("after failures the delay doubles up to an hour, and is never shorter than the host asks", () => {
  expect([1, 2, 3, 6, 7, 24].map((each) => failureDelayMs(each) / MINUTE_MS)).toEqual([1, 2, 4, 32, 60, 60]);
  expect(failureDelayMs(1, 90_000)).toBe(90_000);
  expect(failureDelayMs(7, 90_000)).toBe(60 * MINUTE_MS);
});

test("an event has a pull request read at once, but not more often than every ten seconds", () => {
  expect(readingTimeAfterEvent(100_000, null)).toBe(100_000);
  expect(readingTimeAfterEvent(100_000, 90_000)).toBe(100_000);
  expect(readingTimeAfterEvent(100_000, 99_000)).toBe(109_000);
});

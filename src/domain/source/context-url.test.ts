import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { cpuMs } from "../../../test/harness/cpu-time.ts";
import { replay } from "../../../test/harness/seed.ts";
import { sourceOfPage } from "./context-url.ts";

const HOST = "https://git.example.org";

describe("the page of", () => {
  test.each([
    ["a branch", "/o/r/tree/main", "/o/r", { kind: "path", path: "main" }],
    ["a branch with slashes, or a folder", "/o/r/tree/a/b/c", "/o/r", { kind: "path", path: "a/b/c" }],
    ["a branch with odd characters", "/o/r/tree/a%23b", "/o/r", { kind: "path", path: "a#b" }],
    ["a file", "/o/r/blob/main/README.md#L3", "/o/r", { kind: "path", path: "main/README.md" }],
    ["a commit", "/o/r/commit/0a1b2c3", "/o/r", { kind: "commit", hash: "0a1b2c3" }],
    ["a pull request", "/o/r/pull/7", "/o/r", { kind: "ref", ref: "refs/pull/7/head", branch: "pull/7" }],
    ["its files", "/o/r/pull/7/files", "/o/r", { kind: "ref", ref: "refs/pull/7/head", branch: "pull/7" }],
    [
      "a pull request at Gitea",
      "/o/r/pulls/7",
      "/o/r",
      { kind: "ref", ref: "refs/pull/7/head", branch: "pull/7" },
    ],
    ["a tag", "/o/r/releases/tag/v1/a%23", "/o/r", { kind: "tag", name: "v1/a#" }],
    ["a tag at GitLab", "/g/s/r/-/tags/v1", "/g/s/r", { kind: "tag", name: "v1" }],
    ["a release at GitLab", "/g/s/r/-/releases/v1", "/g/s/r", { kind: "tag", name: "v1" }],
    ["the releases", "/o/r/releases", "/o/r/releases", { kind: "head" }],
    ["an issue", "/o/r/issues/7", "/o/r", { kind: "head" }],
    ["a branch at Gitea", "/o/r/src/branch/a/b", "/o/r", { kind: "path", path: "a/b" }],
    ["a tag at Gitea", "/o/r/src/tag/v1", "/o/r", { kind: "tag", name: "v1" }],
    ["a file of a tag at Gitea", "/o/r/src/tag/v1/a", "/o/r", { kind: "path", path: "v1/a", isTag: true }],
    ["a commit at Gitea", "/o/r/src/commit/0a1b", "/o/r", { kind: "commit", hash: "0a1b" }],
    ["a file of a commit at Gitea", "/o/r/src/commit/0a1b/a/b#L3", "/o/r", { kind: "commit", hash: "0a1b" }],
    ["a commit in capitals", "/o/r/commit/ABCDEF1", "/o/r", { kind: "commit", hash: "abcdef1" }],
    ["a commit in capitals at GitLab", "/g/r/-/commit/ABCDEF1", "/g/r", { kind: "commit", hash: "abcdef1" }],
    ["a branch at GitLab", "/g/s/r/-/tree/a/b?ref_type=heads", "/g/s/r", { kind: "path", path: "a/b" }],
    ["a file at GitLab", "/g/r/-/blob/main/x", "/g/r", { kind: "path", path: "main/x" }],
    ["a commit at GitLab", "/g/r/-/commit/0a1b2c3", "/g/r", { kind: "commit", hash: "0a1b2c3" }],
    ["an issue at GitLab", "/g/s/r/-/issues/3", "/g/s/r", { kind: "head" }],
    [
      "a merge request",
      "/g/s/r/-/merge_requests/8/diffs",
      "/g/s/r",
      { kind: "ref", ref: "refs/merge-requests/8/head", branch: "merge-requests/8" },
    ],
    [
      "a merge request of an old GitLab",
      "/g/r/merge_requests/8",
      "/g/r",
      { kind: "ref", ref: "refs/merge-requests/8/head", branch: "merge-requests/8" },
    ],
    ["a repository", "/o/r", "/o/r", { kind: "head" }],
    ["a repository with its suffix", "/o/r.git/", "/o/r.git", { kind: "head" }],
    ["a repository with a query", "/g/s/r?tab=readme#x", "/g/s/r", { kind: "head" }],
    ["a repository called tree", "/o/tree", "/o/tree", { kind: "head" }],
    ["a group called tree", "/tree/r", "/tree/r", { kind: "head" }],
    ["a pull request without a number", "/o/r/pull/new", "/o/r/pull/new", { kind: "head" }],
    ["what is known nowhere", "/o/r/wiki", "/o/r/wiki", { kind: "head" }],
  ])("%s", (_, page, repository, target) => {
    expect(sourceOfPage(HOST + page)).toEqual({
      remoteUri: HOST + repository,

      target,
    });
  });
});

test("port, scheme and user of a page are those of its repository", () => {
  expect(sourceOfPage("http://ada@git.example.org:8080/o/r/tree/main").remoteUri).toBe(
    "http://ada@git.example.org:8080/o/r",
  );
});

test("a password stays where it is seen and refused", () => {
  expect(sourceOfPage("https://ada:word@git.example.org/o/r/tree/main").remoteUri).toContain("ada:word@");
});

test.each([
  "ssh://git@git.example.org/o/r/tree/main",
  "git@git.example.org:o/r",
  "file:///srv/r/tree/main",
  "x",
])("%s is no page, and stays as it is", (address) => {
  expect(sourceOfPage(address)).toMatchObject({ remoteUri: address, target: { kind: "head" } });
});

test("every path is read, in time that grows with its length", () => {
  fc.assert(
    fc.property(fc.webUrl({ withFragments: true, withQueryParameters: true }), (address) => {
      expect(new URL(sourceOfPage(address).remoteUri).host).toBe(new URL(address).host);
    }),
    replay,
  );
  const tookMs = cpuMs(() => {
    for (const piece of ["/", "/-", "/-/", "/a", "/-/tree", "/pull/1", "/merge_requests/"]) {
      sourceOfPage(HOST + piece.repeat(2_000 / piece.length));
    }
  });
  expect(tookMs).toBeLessThan(1_000);
});

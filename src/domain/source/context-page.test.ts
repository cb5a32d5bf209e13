import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { replay } from "../../../test/harness/seed.ts";
import type { DomainError } from "../error.ts";
import { readContextUrl, spellingsOf } from "./context-page.ts";

const HOST = "https://git.example.org";
const read = (address: string) => readContextUrl(address, "contextUrl");

describe("the address of", () => {
  test.each([
    ["a repository", `${HOST}/o/r`, `${HOST}/o/r`, "o", "r"],
    ["one with its suffix", `${HOST}/o/r.git`, `${HOST}/o/r.git`, "o", "r"],
    ["one in groups", `${HOST}/g/s/r/-/tree/main`, `${HOST}/g/s/r`, "g/s", "r"],
    ["one without an owner", `${HOST}/r.git`, `${HOST}/r.git`, "", "r"],
    ["one with odd letters", `${HOST}/o%20p/r%23s/tree/main`, `${HOST}/o%20p/r%23s`, "o%20p", "r%23s"],
    ["one by http", "http://git.example.org/o/r", "http://git.example.org/o/r", "o", "r"],
    ["one by ssh", "ssh://git@git.example.org/o/r.git", "ssh://git@git.example.org/o/r.git", "o", "r"],
    ["one by ssh's port", "ssh://git@git.example.org:22/o/r", "ssh://git@git.example.org:22/o/r", "o", "r"],
    ["one in the short form", "git@git.example.org:o/r.git", "git@git.example.org:o/r.git", "o", "r"],
    ["one with a query", `${HOST}/o/r?tab=readme#x`, `${HOST}/o/r`, "o", "r"],
    ["one with steps up", `${HOST}/o/x/../r/%2e%2e/r`, `${HOST}/o/r`, "o", "r"],
  ])("%s", (_, address, cloneUrl, owner, repo) => {
    expect(read(address)).toMatchObject({ address, cloneUrl, host: "git.example.org", owner, repo });
  });

  test.each([
    ["https://GIT.example.org:443/o/r", "git.example.org"],
    ["https://git.example.org:8443/o/r", "git.example.org:8443"],
    ["http://git.example.org:80/o/r", "git.example.org"],
    ["ssh://git@git.example.org:2222/o/r", "git.example.org:2222"],
    ["https://[2001:db8::7]:8443/o/r", "[2001:db8::7]:8443"],
  ])("%s is at the host %s", (address, host) => {
    expect(read(address).host).toBe(host);
  });

  test.each([
    ["/o/r/pull/7/files", 7, "/o/r/pull/7"],
    ["/o/r/pulls/7", 7, "/o/r/pulls/7"],
    ["/g/s/r/-/merge_requests/8/diffs?view=parallel", 8, "/g/s/r/-/merge_requests/8"],
    ["/g/r/merge_requests/8/", 8, "/g/r/merge_requests/8"],
    ["/pull/1/pull/2/commits", 2, "/pull/1/pull/2"],
    ["/o/r/pull/2147483647", 2_147_483_647, "/o/r/pull/2147483647"],
  ])("the pull request %s", (page, number, own) => {
    expect(read(HOST + page)).toMatchObject({
      pullRequest: { number, url: HOST + own },
      issue: undefined,
      target: { kind: "ref" },
    });
  });

  test.each([
    ["/o/r/issues/7", "7"],
    ["/o/r/issues/7/", "7"],
    ["/g/s/r/-/issues/3#note_1", "3"],
    ["/o/r/issues", undefined],
    ["/o/r/issues/new", undefined],
    ["/o/r/tree/issues/7", undefined],
  ])("the page %s is of the issue %s", (page, issue) => {
    expect(read(HOST + page)).toMatchObject({ issue, pullRequest: undefined });
  });
});

test("a user name of https and http is in nothing that is read, as it may be a token", () => {
  for (const scheme of ["https://", "http://", "HTTPS://", "https:///"]) {
    const page = read(`${scheme}hunter2hunter2@git.example.org/o/r/pull/7`);
    expect(JSON.stringify(page)).not.toContain("hunter2");
    expect(page).toMatchObject({ host: "git.example.org", owner: "o", repo: "r" });
  }
  expect(read(`${HOST}/o/r/tree/a@b`)).toMatchObject({ target: { kind: "path", path: "a@b" } });
});

describe("no repository is behind", () => {
  test.each([
    "",
    "o/r",
    "/srv/git/r",
    "file:///srv/git/r",
    "git://git.example.org/o/r",
    "ext::sh -c x",
    "http::https://git.example.org/o/r",
    "javascript://git.example.org/%0aalert(1)",
    "--upload-pack=x://git.example.org/o/r",
    "ssh://-oProxyCommand=x/o/r",
    "https://git.example.org",
    "https://git.example.org/",
    "https://git.example.org/.git",
    "https://git.example.org\\@evil.example/o/r",
    "https://git.example.org/o/r\n",
    "https://git.example.org/o/ r",
    "https://git.exa\tmple.org/o/r",
    `${HOST}/o/r/pull/2147483648`,
    `${HOST}/o/r/pull/${"9".repeat(400)}`,
    `${HOST}/o/r/issues/${"9".repeat(400)}`,
    "https://ada:hunter2@git.example.org/o/r",
    "https:///ada:hunter2@git.example.org/o/r",
    "ssh://ada:hunter2@git.example.org/o/r",
  ])("%j, which the error does not show", (address) => {
    let error: DomainError | undefined;
    try {
      read(address);
    } catch (thrown) {
      error = thrown as DomainError;
    }
    expect(error).toMatchObject({ reason: ErrorReason.VALUE_UNUSABLE, metadata: { field: "contextUrl" } });
    expect(error?.message).not.toMatch(/hunter2|evil/);
  });
});

test("the host is the one that a client would connect to, whatever the address", () => {
  fc.assert(
    fc.property(fc.webUrl({ withFragments: true, withQueryParameters: true }), (address) => {
      let page: ReturnType<typeof read> | undefined;
      try {
        page = read(address);
      } catch (error) {
        expect(error).toMatchObject({ reason: ErrorReason.VALUE_UNUSABLE });
      }
      if (page)
        expect([page.host, new URL(page.cloneUrl).host]).toEqual(Array(2).fill(new URL(address).host));
    }),
    replay,
  );
});

describe("a project may name the repository as", () => {
  test("its address by every way", () => {
    expect(spellingsOf(read(`${HOST}/o/r.git`)).toSorted()).toEqual([
      "git@git.example.org:o/r",
      "git@git.example.org:o/r.git",
      "http://git.example.org/o/r",
      "http://git.example.org/o/r.git",
      "https://git.example.org/o/r",
      "https://git.example.org/o/r.git",
      "ssh://git@git.example.org/o/r",
      "ssh://git@git.example.org/o/r.git",
    ]);
    expect(spellingsOf(read("git@git.example.org:o/r.git"))).toEqual(
      expect.arrayContaining([`${HOST}/o/r`, "git@git.example.org:o/r"]),
    );
  });

  test.each([
    ["ssh://git@git.example.org:2222/o/r", ["git@"]],
    ["ssh://ada@git.example.org:2222/o/r.git", ["ada@", "git@"]],
    ["ssh://git.example.org:2222/o/r.git", ["", "git@"]],
  ])("its address by ssh at a port with the user, and that of git hosts: %s", (address, users) => {
    const bases = users.map((user) => `ssh://${user}git.example.org:2222/o/r`);
    expect(spellingsOf(read(address)).toSorted()).toEqual(
      bases.flatMap((base) => [base, `${base}.git`]).toSorted(),
    );
  });

  test("its address in the short form of its own user", () => {
    expect(spellingsOf(read("ssh://ada@git.example.org:22/o/r"))).toEqual(
      expect.arrayContaining(["ssh://ada@git.example.org/o/r.git", "ada@git.example.org:o/r", `${HOST}/o/r`]),
    );
  });

  test("its address by the one way that its port belongs to", () => {
    expect(spellingsOf(read("https://git.example.org:8443/o/r"))).toEqual([
      "https://git.example.org:8443/o/r",
      "https://git.example.org:8443/o/r.git",
    ]);
  });
});

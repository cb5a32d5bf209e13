import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { replay } from "../../../test/harness/seed.ts";
import { repositoryPath } from "./repository-path.ts";

describe("the repository behind a remote", () => {
  test.each([
    ["https://git.example.org/o/r.git", "o/r"],
    ["https://git.example.org/o/r", "o/r"],
    ["https://git.example.org:8443/o/r.git/", "o/r"],
    ["http://git.example.org//o/r.git", "o/r"],
    ["https://user@git.example.org/o/r.git", "o/r"],
    ["https://git.example.org/o/r.git?ref=main", "o/r"],
    ["https://git.example.org/o/r#readme", "o/r"],
    ["HTTPS://git.example.org/o/r", "o/r"],
    ["https://git.example.org/group/sub/deep/r.git", "group/sub/deep/r"],
    ["ssh://git@git.example.org:2222/o/r.git", "o/r"],
    ["ssh://git@[2001:db8::7]/o/r.git", "o/r"],
    ["git://git.example.org/o/r.git", "o/r"],
    ["git@git.example.org:o/r.git", "o/r"],
    ["git@git.example.org:/o/r.git", "o/r"],
    ["git.example.org:group/sub/r", "group/sub/r"],
    ["git@[2001:db8::7]:o/r.git", "o/r"],
    ["https://git.example.org/o/r.git.git", "o/r.git"],
    ["https://git.example.org/o/.github", "o/.github"],
    ["https://git.example.org/o_1/r-2.x", "o_1/r-2.x"],
  ])("of %s is %s", (remote, path) => {
    expect(repositoryPath(remote)).toBe(path);
  });

  test.each([
    "",
    "r",
    "/srv/git/o/r.git",
    "file:///srv/git/o/r.git",
    "https://git.example.org",
    "https://git.example.org/r.git",
    "https://git.example.org/o/.git",
    "https://git.example.org/../r",
    "https://git.example.org/o/..",
    "https://git.example.org/o/./r",
    "https://git.example.org/o//r",
    "https://git.example.org/o/r%2f..",
    "https://git.example.org/o/r s",
    "https://git.example.org/o/r\n",
    "https://git.example.org/~user/r.git",
    "git@git.example.org:r.git",
    "git@git.example.org:../o/r.git",
    "ftp://git.example.org/o/r.git",
  ])("of %j is none", (remote) => {
    expect(repositoryPath(remote)).toBeUndefined();
  });

  test("is never anything that leaves its place in a URL", () => {
    const segment = fc.constantFrom("..", ".", "", "a", "%2e%2e", "?", "#", "@", "\\", "r.git", ":", "é");
    fc.assert(
      fc.property(fc.array(segment, { maxLength: 6 }), (segments) => {
        const path = repositoryPath(`https://git.example.org/${segments.join("/")}`);
        if (path === undefined) return;
        expect(new URL(`https://api.example.org/repos/${path}/pulls`).pathname).toBe(`/repos/${path}/pulls`);
      }),
      replay,
    );
  });
});

import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { cpuMs } from "../../../test/harness/cpu-time.ts";
import { replay } from "../../../test/harness/seed.ts";
import { isClonable, remoteForms, repositoryName } from "./remote.ts";

describe("the forms under which a remote is found", () => {
  test.each([
    ["git@git.example.org:o/r.git", "ssh://git@git.example.org/o/r.git"],
    ["git.example.org:o/r.git", "ssh://git.example.org/o/r.git"],
    ["git@git.example.org:group/sub/deep/r", "ssh://git@git.example.org/group/sub/deep/r"],
    ["git@git.example.org:r.git", "ssh://git@git.example.org/r.git"],
    ["git@git.example.org:/srv/git/r.git", "ssh://git@git.example.org/srv/git/r.git"],
    ["git@git.example.org:~user/r.git", "ssh://git@git.example.org/~user/r.git"],
    ["git@[2001:db8::7]:o/r.git", "ssh://git@[2001:db8::7]/o/r.git"],
    ["[::1]:o/r.git", "ssh://[::1]/o/r.git"],
    ["[::ffff:192.0.2.1]:o/r.git", "ssh://[::ffff:192.0.2.1]/o/r.git"],
    ["git@git.example.org:o/r.git/", "ssh://git@git.example.org/o/r.git/"],
    ["git@git.example.org:o/r%20s.git", "ssh://git@git.example.org/o/r%20s.git"],
  ])("%s is found as given and as %s", (remote, ssh) => {
    expect(remoteForms(remote)).toEqual([remote, ssh]);
  });

  test.each([
    "https://git.example.org/o/r.git",
    "https://git.example.org:8443/o/r.git",
    "https://user@git.example.org/o/r",
    "ssh://git@git.example.org/o/r.git",
    "ssh://git@git.example.org:2222/o/r.git",
    "ssh://git@[2001:db8::7]:2222/o/r.git",
    "git://git.example.org/o/r.git",
    "file:///srv/git/r.git",
    "/srv/git/r.git",
    "./r:with/colon",
    "r",
    "[git.example.org:2222]:o/r.git",
    "host:",
    ":path",
    "host://o/r",
    "",
  ])("%s is found only as given", (remote) => {
    expect(remoteForms(remote)).toEqual([remote]);
  });

  test("an https remote and the scp form of the same repository are not found by each other", () => {
    expect(remoteForms("git@git.example.org:o/r.git")).not.toContain("https://git.example.org/o/r.git");
  });

  test("a drive letter is read as git reads it outside of Windows, as a host", () => {
    expect(remoteForms("C:\\x")).toEqual(["C:\\x", "ssh://C/\\x"]);
  });
});

describe("the repository's name", () => {
  test.each([
    ["git@git.example.org:o/r.git", "r"],
    ["git.example.org:o/r.git", "r"],
    ["git@git.example.org:r.git", "r"],
    ["git@git.example.org:/srv/git/r.git", "r"],
    ["git@git.example.org:~user/r.git", "r"],
    ["git@[2001:db8::7]:o/r.git", "r"],
    ["[::1]:r.git", "r"],
    ["https://git.example.org/o/r.git", "r"],
    ["https://git.example.org/o/r", "r"],
    ["https://user:word@git.example.org:8443/o/r.git", "r"],
    ["ssh://git@git.example.org:2222/o/r.git", "r"],
    ["git://git.example.org/o/r.git", "r"],
    ["file:///srv/git/r.git", "r"],
    ["/srv/git/r.git", "r"],
    ["https://git.example.org/group/sub/deep/r.git", "r"],
    ["https://git.example.org/o/r.git/", "r"],
    ["https://git.example.org/o/r///", "r"],
    ["git@git.example.org:o/r.git/", "r"],
    ["https://git.example.org/o/r.git.git", "r.git"],
    ["https://git.example.org/o/r.git?ref=main", "r"],
    ["https://git.example.org/o/r.git#readme", "r"],
    ["https://git.example.org/o/r?path=/a/b#c/d", "r"],
    ["https://git.example.org/o/r%20s.git", "r%20s"],
    ["https://git.example.org/o/%E6%9D%B1%E4%BA%AC.git", "%E6%9D%B1%E4%BA%AC"],
    ["https://git.example.org/o/100%.git", "100%"],
    ["https://git.example.org/o/%ff.git", "%ff"],
    ["https://git.example.org/o/.github", ".github"],
    ["https://git.example.org/o/r.gitx", "r.gitx"],
    ["r", "r"],
  ])("of %s is %s", (remote, name) => {
    expect(repositoryName(remote)).toBe(name);
  });

  test.each([
    "",
    "/",
    "https://git.example.org",
    "https://git.example.org/",
    "https://git.example.org?o/r",
    "https://git.example.org/.git",
    "git@git.example.org:/",
    "#r",
  ])("of %j is empty: it has no last segment", (remote) => {
    expect(repositoryName(remote)).toBe("");
  });

  test("of a path with a drive letter is what follows the letter", () => {
    expect(repositoryName("C:\\x")).toBe("\\x");
  });
});

describe("a remote that runners clone", () => {
  test.each([
    "https://git.example.org/o/r.git",
    "HTTPS://git.example.org/o/r",
    "http://git.example.org:8080/r",
    "https://user@git.example.org/o/r",
    "ssh://git@git.example.org:2222/o/r.git",
    "ssh://[2001:db8::7]/o/r",
    "file:///srv/git/r.git",
    "git@git.example.org:o/r.git",
    "git.example.org:r",
    "git@[2001:db8::7]:o/r",
    "[::1]:r",
  ])("is %s", (remote) => {
    expect(isClonable(remote)).toBe(true);
  });

  test.each([
    "",
    "r",
    "./r",
    "/srv/git/r.git",
    "-oProxyCommand=x:y",
    "--upload-pack=x",
    "ssh://-oProxyCommand=x/r",
    "git@-oProxyCommand=x:r",
    "ext::sh -c x",
    "fd::3",
    "http::https://git.example.org/r",
    "git://git.example.org/r",
    "ftp://git.example.org/r",
    "javascript://git.example.org/r",
    "https://git.example.org",
    "https://git.example.org/",
    "https:///",
    "file://git.example.org/r",
    "file:///",
    "ssh://git.example.org",
  ])("is not %j", (remote) => {
    expect(isClonable(remote)).toBe(false);
  });
});

test("no text makes either of them fail, and the form as given always comes first", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 40 }), (remote) => {
      expect(remoteForms(remote)[0]).toBe(remote);
      expect(repositoryName(remote)).toEqual(expect.any(String));
    }),
    replay,
  );
});

test("a long remote without sense is read in time that grows with its length", () => {
  const tookMs = cpuMs(() => {
    for (const piece of ["/", "@", ":", "[", "a:", "a@", "?", "/a"]) repositoryName(piece.repeat(2_048));
  });
  expect(tookMs).toBeLessThan(1_000);
});

import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { replay } from "../../../test/harness/seed.ts";
import { repositoryHost, repositoryIdentity } from "./repository-identity.ts";

describe("one repository", () => {
  test.each([
    "https://git.example.org/o/r",
    "https://git.example.org/o/r.git",
    "https://git.example.org/o/r/",
    "https://git.example.org/o/r.git/",
    "https://git.example.org:443/o/r.git",
    "https://user:word@git.example.org/o/r.git",
    "https://git.example.org/o/r.git?ref=main#readme",
    "https://git.example.org//o//r.git",
    "https://git.example.org/O/R.GIT",
    "HTTPS://GIT.Example.ORG/o/r",
    "http://git.example.org/o/r.git",
    "http://git.example.org:80/o/r.git",
    "git@git.example.org:o/r.git",
    "git@GIT.example.org:/o/r",
    "git.example.org:o/r.git",
    "ssh://git@git.example.org/o/r.git",
    "ssh://git.EXAMPLE.org:22/o/r.git",
    "git://git.example.org/o/r.git",
    "git://git.example.org:9418/o/r.git",
  ])("is recognized in %s", (remote) => {
    expect(repositoryIdentity(remote)).toBe("git.example.org/o/r");
    expect(repositoryHost(remote)).toBe("git.example.org");
  });
});

describe("another repository", () => {
  test.each([
    ["https://git.example.org:8443/o/r.git", "git.example.org:8443/o/r"],
    ["https://git.example.org:22/o/r.git", "git.example.org:22/o/r"],
    ["ssh://git@git.example.org:2222/o/r.git", "git.example.org:2222/o/r"],
    ["git@git.example.org:2222/o/r.git", "git.example.org/2222/o/r"],
    ["https://git.example.org/o/r.git.git", "git.example.org/o/r.git"],
    ["https://git.example.org/o/rgit", "git.example.org/o/rgit"],
    ["https://git.example.org/o/r/s", "git.example.org/o/r/s"],
    ["https://git.example.org/o/../p/r", "git.example.org/p/r"],
    ["https://git.example.org.evil.example/o/r", "git.example.org.evil.example/o/r"],
    ["https://git.example.org@evil.example/o/r", "evil.example/o/r"],
    ["git@[2001:db8::7]:o/r.git", "[2001:db8::7]/o/r"],
    ["https://[2001:db8::7]:8443/o/r.git", "[2001:db8::7]:8443/o/r"],
  ])("%s is %s", (remote, identity) => {
    expect(repositoryIdentity(remote)).toBe(identity);
  });

  test("is known by its host without the port", () => {
    expect(repositoryHost("https://git.example.org:8443/o/r.git")).toBe("git.example.org");
    expect(repositoryHost("https://[2001:db8::7]:8443/o/r.git")).toBe("[2001:db8::7]");
    expect(repositoryHost("git@[2001:db8::7]:o/r.git")).toBe("[2001:db8::7]");
  });
});

describe("at no host", () => {
  test.each([
    "",
    "r",
    "/srv/git/r.git",
    "./o/r",
    "file:///srv/git/r.git",
    "https://git.example.org",
    "https://git.example.org/",
    "https://git.example.org/.git",
    "https://git.example.org/o/.git",
    "https://",
    "ssh:///o/r",
    "ftp://git.example.org/o/r",
    "javascript://git.example.org/o/r",
    "https://git.example.org:99999/o/r",
  ])("%j is no repository", (remote) => {
    expect(repositoryIdentity(remote)).toBeUndefined();
    expect(repositoryHost(remote)).toBeUndefined();
  });
});

test("the scp form and the web URL of one repository are one, and no text makes it fail", () => {
  const path = fc.stringMatching(/^[a-z0-9_~%-]{1,8}\/[A-Za-z0-9_.-]{0,7}[a-z]$/);
  fc.assert(
    fc.property(path, fc.string({ unit: "binary" }), (name, text) => {
      const identity = repositoryIdentity(`https://git.example.org/${name}`);
      expect(identity).toMatch(/^git\.example\.org\/./);
      expect(repositoryIdentity(`git@git.example.org:${name}.git`)).toBe(
        repositoryIdentity(`https://git.example.org/${name}.git`),
      );
      expect(repositoryIdentity(text) === undefined).toBe(repositoryHost(text) === undefined);
    }),
    replay,
  );
});

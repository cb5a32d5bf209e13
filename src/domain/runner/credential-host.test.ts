import { describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { credentialHost } from "./credential-host.ts";

describe("the host of a credential", () => {
  test.each([
    ["git.example.org", "git.example.org"],
    ["Git.Example.ORG:8443", "git.example.org:8443"],
    ["a_b.example.org", "a_b.example.org"],
    ["xn--9ca.example.org", "xn--9ca.example.org"],
    ["localhost", "localhost"],
    [`${"a".repeat(63)}.example.org`, `${"a".repeat(63)}.example.org`],
    ["h:80", "h:80"],
    ["127.0.0.1:3000", "127.0.0.1:3000"],
    ["[::1]:3000", "[::1]:3000"],
  ])("%s is kept as %s", (given, kept) => {
    expect(credentialHost(given)).toBe(kept);
  });

  test.each([
    ["https://git.example.org", "git.example.org"],
    ["http://git.example.org:3000/team/hello.git", "git.example.org:3000"],
    ["git.example.org/", "git.example.org"],
    ["git.example.org/team/hello.git", "git.example.org"],
    ["git.example.org:443", "git.example.org"],
    ["git.example.org:08443", "git.example.org:8443"],
    ["oauth2:secret@git.example.org", "git.example.org"],
    ["é.example.org", "xn--9ca.example.org"],
    [" git.example.org\n", "git.example.org"],
    ["[0::1]", "[::1]"],
    ["git.example.org:0", "git.example.org or git.example.org:8443"],
    ["git.example.org:99999", "git.example.org or git.example.org:8443"],
    ["git..example.org", "git.example.org or git.example.org:8443"],
    ["git-.example.org", "git.example.org or git.example.org:8443"],
    [`${"a".repeat(64)}.example.org`, "git.example.org or git.example.org:8443"],
    ["git.example.org.", "git.example.org or git.example.org:8443"],
    ["-a.example.org", "git.example.org or git.example.org:8443"],
    ["*.example.org", "git.example.org or git.example.org:8443"],
    ["a b", "git.example.org or git.example.org:8443"],
    ["\0", "git.example.org or git.example.org:8443"],
    ["", "git.example.org or git.example.org:8443"],
  ])("'%s' is refused, with an example that is taken", (given, example) => {
    expect(() => credentialHost(given)).toThrow(
      expect.objectContaining({
        reason: ErrorReason.VALUE_UNUSABLE,
        metadata: { field: "host" },
        message: expect.stringMatching(new RegExp(`, such as ${example.replace(/[[\].]/g, "\\$&")}$`)),
      }),
    );
  });
});

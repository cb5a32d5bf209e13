import { create } from "@bufbuild/protobuf";
import { expect, test } from "@jest/globals";
import { EnvironmentInitializerSchema } from "#gen/service/v1/environment_pb.js";
import { addressesOf, isHostOf } from "./initializer-address.ts";

test("the addresses of an initializer are its remotes, what they are forks of, and its pages", () => {
  const initializer = create(EnvironmentInitializerSchema, {
    specs: [
      { spec: { case: "git", value: { remoteUri: "https://a.example.org/x.git" } } },
      {
        spec: {
          case: "git",
          value: { remoteUri: "git@b.example.org:x/y", upstreamRemoteUri: "https://c.example.org/y" },
        },
      },
      { spec: { case: "contextUrl", value: { url: "https://d.example.org/x/y/pull/1" } } },
    ],
  });
  expect(addressesOf(initializer)).toEqual([
    "https://a.example.org/x.git",
    "git@b.example.org:x/y",
    "https://c.example.org/y",
    "https://d.example.org/x/y/pull/1",
  ]);
  expect(addressesOf(undefined)).toEqual([]);
});

test.each([
  ["git.example.org", "https://git.example.org/a/b.git", true],
  ["git.example.org", "https://git.example.org:443/a/b.git", true],
  ["git.example.org", "https://someone@Git.Example.org/a/b", true],
  ["git.example.org", "git@git.example.org:a/b.git", true],
  ["git.example.org", "ssh://git@git.example.org/a/b", true],
  ["git.example.org:8443", "https://git.example.org:8443/a/b", true],
  ["[::1]:8080", "http://[::1]:8080/a/b", true],
  ["git.example.org", "https://git.example.org:8443/a/b", false],
  ["git.example.org:8443", "https://git.example.org/a/b", false],
  ["example.org", "https://git.example.org/a/b", false],
  ["git.example.org", "https://git.example.org.evil.example/a/b", false],
  ["git.example.org", "https://evil.example/git.example.org/b", false],
  ["git.example.org", "https://git.example.org@evil.example/a/b", false],
  ["", "file:///srv/git/a.git", false],
  ["srv", "/srv/git/a.git", false],
])("%j is the host of %s: %p", (host, address, expected) => {
  expect(isHostOf(host, ["https://other.example/x/y", address])).toBe(expected);
});

import { readFileSync } from "node:fs";
import { create, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { GitInitializerSchema } from "#gen/service/v1/environment_pb.js";
import { ListProjectsRequestSchema } from "#gen/service/v1/project_service_pb.js";
import { createCheck } from "../../src/rpc/check.ts";

const check = createCheck();
const isValid = <D extends DescMessage>(schema: D, message: MessageShape<D>): boolean => {
  try {
    check(schema, message);
    return true;
  } catch {
    return false;
  }
};
const canBeStored = (remoteUri: string) =>
  isValid(GitInitializerSchema, create(GitInitializerSchema, { remoteUri }));
const canBeAskedFor = (remoteUri: string) =>
  isValid(
    ListProjectsRequestSchema,
    create(ListProjectsRequestSchema, { filter: { specRemoteUris: [remoteUri] } }),
  );

describe("the remote of a project", () => {
  test.each([
    "https://git.example.org/team/hello.git",
    "http://git.example.org:3000/team/hello",
    "ssh://git@git.example.org/team/hello.git",
    "ssh://[2001:db8::1]:22/team/hello.git",
    "git://git.example.org/hello.git",
    "file:///srv/git/hello.git",
    "https://git.example.org/équipe/böse%20Dateien",
    "git@git.example.org:team/hello.git",
    "git.example.org:team/hello.git",
    "git@[2001:db8::1]:team/hello.git",
    "git@git.example.org:équipe/hello.git",
    "gh:team/hello.git",
    `https://${"a".repeat(2040)}`,
  ])("can be %s, and be asked for under it", (remote) => {
    expect(canBeStored(remote)).toBe(true);
    expect(canBeAskedFor(remote)).toBe(true);
  });

  test.each([
    "",
    "x",
    "team/hello.git",
    "/srv/git/hello.git",
    "./hello.git",
    "https://",
    "host:",
    ":path",
    "@host:path",
    "C:\\repo",
    "C:/repo",
    "h:path",
    "ext::sh",
    "-oProxyCommand=touch:x",
    "git@-oProxyCommand:x",
    "https://git.example.org/a b",
    "git@git.example.org:a\u00a0b",
    `https://${"a".repeat(2041)}`,
  ])("cannot be '%s'", (remote) => {
    expect(canBeStored(remote)).toBe(false);
  });

  test.each(["x", "", "two words", "git@git.example.org:a b", "/srv/git/hello.git"])(
    "cannot be asked for as '%s'",
    (remote) => {
      expect(canBeAskedFor(remote)).toBe(false);
    },
  );

  test("has one pattern, wherever the contract asks for it", () => {
    const pattern = (file: string, rule: string) =>
      new RegExp(`id: "${rule}"[^}]*?(this\\.matches\\('\\^.*?\\$'\\))`).exec(
        readFileSync(`proto/service/v1/${file}.proto`, "utf8"),
      )?.[1];
    const stored = pattern("environment", "remote_uri_form");
    expect(stored).toContain("://");
    expect(pattern("project_service", "uri_or_remote")).toBe(stored);
  });

  test("can be asked for by a URI of every scheme", () => {
    expect(canBeAskedFor("urn:isbn:0451450523")).toBe(true);
    expect(canBeAskedFor("mailto:ann@example.org")).toBe(true);
  });
});

describe("the depth of a clone", () => {
  test.each([
    [undefined, true],
    [0, true],
    [1, true],
    [999_999, true],
    [1_000_000, true],
    [1_000_001, false],
    [-1, false],
  ])("%s is valid: %s", (depth, valid) => {
    const remoteUri = "https://git.example.org/team/hello.git";
    const initializer = create(GitInitializerSchema, { remoteUri, ...(depth !== undefined && { depth }) });
    expect(isValid(GitInitializerSchema, initializer)).toBe(valid);
  });
});

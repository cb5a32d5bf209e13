import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { Secret_CredentialProxySchema } from "#gen/service/v1/secret_pb.js";
import {
  credentialHostOf,
  credentialParts,
  requireCredentialProxy,
  requireCredentialProxyKnown,
  requireHeaderValue,
} from "./credential-proxy.ts";

const UNUSABLE = expect.objectContaining({ reason: expect.anything() });

test.each<[string, object | undefined]>([
  ["a.example", { host: "a.example", port: 443 }],
  ["A.Example.:8443", { host: "a.example", port: 8443 }],
  ["bücher.example", { host: "xn--bcher-kva.example", port: 443 }],
  ["localhost:1", { host: "localhost", port: 1 }],
  ["a.example:65535", { host: "a.example", port: 65_535 }],
  ["a.example:65536", undefined],
  ["a.example:0", undefined],
  ["a.example:", undefined],
  ["*.example", undefined],
  ["https://a.example", undefined],
  ["a.example/x", undefined],
  ["u@a.example", undefined],
  ["127.0.0.1", undefined],
  ["2130706433", undefined],
  ["[::1]:443", undefined],
  ["::1", undefined],
  ["", undefined],
])("the host %j is %j", (text, host) => {
  expect(credentialHostOf(text)).toEqual(host);
});

test.each<[string[], string, boolean]>([
  [["a.example"], "Authorization", true],
  [["a.example", "b.example:8443"], "x-api-key", true],
  [[], "authorization", false],
  [["a.example", "*"], "authorization", false],
  [["a.example"], "", false],
  [["a.example"], "a b", false],
  [["a.example"], "a:", false],
  [["a.example"], "HOST", false],
  [["a.example"], "Content-Length", false],
  [["a.example"], "proxy-authorization", false],
])("a proxy for %j and the header %j may be stored: %s", (targetHosts, header, may) => {
  const require = () => requireCredentialProxy(create(Secret_CredentialProxySchema, { targetHosts, header }));
  if (may) require();
  else expect(require).toThrow(UNUSABLE);
});

test.each<[string, boolean]>([
  ["abcd", true],
  ["Bearer a b~", true],
  ["abc", false],
  ["abcd\n", false],
  [" abcd", false],
  ["abcd ", false],
  ["ab\tcd", false],
  ["abcdé", false],
  ["", false],
])("the value %j may be put into a header: %s", (value, may) => {
  if (may) requireHeaderValue(value);
  else expect(() => requireHeaderValue(value)).toThrow(UNUSABLE);
});

test("none is stored while a server of the release before runs", () => {
  requireCredentialProxyKnown(true);
  expect(() => requireCredentialProxyKnown(false)).toThrow(/once every server runs this release/);
});

describe("what is masked", () => {
  test.each<[string, readonly string[]]>([
    ["token", ["token"]],
    ["Bearer token", ["Bearer token", "token"]],
    [
      `Basic ${Buffer.from("user:pass:word").toString("base64")}`,
      ["Basic dXNlcjpwYXNzOndvcmQ=", "dXNlcjpwYXNzOndvcmQ=", "user:pass:word", "pass:word"],
    ],
  ])("of %j", (value, parts) => {
    expect(credentialParts(value)).toEqual(parts);
  });
});

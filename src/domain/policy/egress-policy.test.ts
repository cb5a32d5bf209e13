import { create } from "@bufbuild/protobuf";
import { expect, test } from "@jest/globals";
import { EgressPolicySchema } from "#gen/service/v1/organization_pb.js";
import { canonicalEgressHost, requireMeaningfulEgress } from "./egress-policy.ts";

test.each([
  ["API.Example.ORG", "api.example.org"],
  ["api.example.org.", "api.example.org"],
  ["*.Example.org", "*.example.org"],
  ["10.0.0.7", "10.0.0.7"],
  ["0x0a000007", "10.0.0.7"],
  ["FD00:0::7", "fd00::7"],
  ["b\u00fccher.example", "xn--bcher-kva.example"],
])("the host %s has one spelling", (text, host) => {
  expect(canonicalEgressHost(text)).toBe(host);
});

test.each([
  "",
  "*",
  "*.",
  "*.10.0.0.7",
  "*.fd00::7",
  "a.*.example.org",
  "a.example:443",
  "https://a.example",
  "a.example/",
  "u@a.example",
  "[fd00::7]",
  "a b",
  "-a.example",
  "256.1.1.1",
])("%j is refused with its place", (host) => {
  const policy = create(EgressPolicySchema, { hosts: [{ host: "a.example" }, { host }] });
  expect(() => requireMeaningfulEgress(policy)).toThrow(/^egress\.hosts\[1\]\.host must be a name/);
});

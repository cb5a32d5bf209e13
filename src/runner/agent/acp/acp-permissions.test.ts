import { createHash } from "node:crypto";
import { expect, test } from "@jest/globals";
import { Secrets } from "../../../domain/secrets.ts";
import { KnownCalls } from "./acp-permissions.ts";

const knownCalls = () => new KnownCalls(new Secrets());

test("what is reported about a call later counts, and the rest stays", () => {
  const calls = knownCalls();
  calls.add({ id: "a", title: "Run", kind: 6, input: "one", locations: [{ path: "x" }] }, "shell");
  expect(calls.add({ id: "a", title: "", input: "two", locations: [] }, "")).toEqual({
    call: { id: "a", title: "Run", kind: 6, input: "two", locations: [{ path: "x" }] },
    tool: "shell",
  });
});

test("of a long input its start and digest are kept", () => {
  const input = "x".repeat(1_000_000);
  const calls = knownCalls();
  calls.add({ id: "a", input }, "");
  const { call } = calls.add({ id: "a" }, "");
  expect(JSON.parse(call.input ?? "")).toEqual({
    bytes: 1_000_000,
    sha256: createHash("sha256").update(input).digest("hex"),
    start: "x".repeat(32_768),
  });
});

test("the latest 256 calls are kept, of 8 Mi characters together", () => {
  const calls = knownCalls();
  const isKept = (id: string) => calls.add({ id }, "").call.title !== undefined;
  for (let at = 0; at < 257; at++) calls.add({ id: `few ${at}`, title: "t" }, "");
  expect(["few 0", "few 2"].map(isKept)).toEqual([false, true]);
  for (let at = 0; at < 5; at++) calls.add({ id: `large ${at}`, title: "t".repeat(2_000_000) }, "");
  expect([0, 1, 4].map((at) => isKept(`large ${at}`))).toEqual([false, true, true]);
  calls.add({ id: "too large", title: "t".repeat(9_000_000) }, "");
  expect(isKept("too large")).toBe(false);
  calls.add({ id: "small", title: "t" }, "");
  expect(isKept("small")).toBe(true);
});

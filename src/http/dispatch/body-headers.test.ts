import { describe, expect, test } from "@jest/globals";
import { normalizeBodyHeaders } from "./body-headers.ts";

function normalized(name: string, value: string): unknown {
  const headers: Record<string, string | string[] | undefined> = { [name]: value };
  normalizeBodyHeaders(headers);
  return headers[name];
}

describe("a content type", () => {
  test.each([
    ["application/json", "application/json"],
    ["Application/JSON", "application/json"],
    ["application/json;", "application/json"],
    ["application/json ; ", "application/json"],
    ["application/json;;charset=utf-8;", "application/json"],
    ['application/json; charset="utf-8"', "application/json"],
    ['application/json;Charset="UTF\\-8"', "application/json"],
    ["application/json;  charset=UTF8", "application/json"],
    ['application/connect+json; charset="utf-8"', "application/connect+json"],
    ["application/grpc-web+JSON; charset=utf-8", "application/grpc-web+json"],
    ["application/PROTO;", "application/proto"],
  ])("of %j means %s", (sent, usual) => {
    expect(normalized("content-type", sent)).toBe(usual);
  });

  test.each([
    "application/json; charset=iso-8859-1",
    'application/json; charset="utf-16"',
    "application/json; version=2",
    "application/json; charset",
    'application/json; charset="utf-8',
    'application/json; charset="utf-8"x',
    "application/json charset=utf-8",
    "application/proto; charset=utf-8",
    "application",
    "",
  ])("of %j is left as it is", (sent) => {
    expect(normalized("content-type", sent)).toBe(sent);
  });
});

describe.each(["content-encoding", "connect-content-encoding", "grpc-encoding"])("%s", (name) => {
  test.each([
    ["GZIP", "gzip"],
    ["x-gzip", "gzip"],
    ["X-GZip", "gzip"],
    ["Identity", "identity"],
    ["br", "br"],
    ["GZIP, br", "GZIP, br"],
  ])("of %j becomes %j", (sent, usual) => {
    expect(normalized(name, sent)).toBe(usual);
  });
});

import { fromJsonString } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { CreateProjectRequestSchema } from "#gen/service/v1/project_service_pb.js";
import { CreateHostAuthenticationTokenRequestSchema } from "#gen/service/v1/runner_configuration_service_pb.js";
import { readJsonText } from "../request/request-reading.ts";
import { redactErrorMessage } from "./error.ts";

const SECRET = "s3cr3t-in-the-wrong-place";
const HOST_TOKEN = "cannot decode message service.v1.CreateHostAuthenticationTokenRequest from JSON";

/** What the decoder says of a request for a host token. */
function said(text: string, schema = CreateHostAuthenticationTokenRequestSchema as never): string {
  try {
    fromJsonString(schema, readJsonText(Buffer.from(text)));
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error("the text is a request");
}

describe("what is said of JSON that is no request", () => {
  test.each([
    ["a secret for a number of an enum", { source: SECRET }, "cannot decode enum"],
    ["a secret for a list", { scopes: SECRET }, "scopes from JSON: expected Array"],
    ["a secret for a message", { subject: SECRET }, "cannot decode message service.v1.Subject from JSON"],
    ["a secret for a time", { expiresAt: SECRET }, "google.protobuf.Timestamp from JSON"],
    ["a number for a secret", { token: 9_876_543_210 }, "token from JSON: expected string"],
    ["a list of numbers for scopes", { scopes: [9_876_543_210] }, "list item #1: expected string"],
    ["a secret for a name", { [SECRET]: 1 }, HOST_TOKEN],
    ["a word with digits for a name", { canary44be849a41ef2b: 1 }, HOST_TOKEN],
    ["a token for a name", { cr_pat_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ: 1 }, HOST_TOKEN],
  ])("names the place and not the value of %s", (_, body, told) => {
    const message = said(JSON.stringify(body));
    expect(redactErrorMessage(message)).toContain(told);
    expect(redactErrorMessage(message)).not.toMatch(/s3cr3t|9876543210|cr_pat_|canary/);
  });

  test("does not quote the text around a mistake", () => {
    const texts = [
      `{"token": "x", "refreshToken": ${SECRET}}`,
      `{"token": "${SECRET}" "host": ""}`,
      `${SECRET}`,
      `{"token": '${SECRET}'}`,
      `{"token": "${SECRET}`,
      `{"token": "${SECRET}\n"}`,
      `{"token": "🗝${SECRET}", oops}`,
      `{"note": "🗝", "token": ${SECRET}}`,
    ];
    for (const text of texts) {
      const told = redactErrorMessage(said(text));
      expect(told).toMatch(/JSON/);
      expect(told).not.toContain("s3cr3t");
    }
  });

  test("does not tell a key of a map, or one that stands twice", () => {
    const annotations = { annotations: { [SECRET]: 7 } };
    for (const text of [JSON.stringify(annotations), `{"annotations":{"${SECRET}":"","${SECRET}":""}}`]) {
      const message = said(text, CreateProjectRequestSchema as never);
      expect(message).toContain(SECRET);
      expect(redactErrorMessage(message)).not.toContain(SECRET);
    }
  });

  test.each([
    ['{"hots": "x"}', `${HOST_TOKEN}: key "hots" is unknown`],
    ['{"host": 7}', "expected string"],
    ['{"host": "a", "host": "b"}', HOST_TOKEN],
    ["{", "at position 1 (line 1 column 2)"],
    [" ", "Unexpected end of JSON input"],
    ['{"host": "x"', "in JSON at position 12 (line 1 column 13)"],
    ['{"expiresAt": "soon"}', "invalid RFC 3339 string"],
    ['{"host": "\\ud800"}', "the escape \\ud800 is half a character without its other half"],
    ['{"scopes": [null]}', "list item must not be null"],
  ])("still tells what is wrong with %s", (text, told) => {
    expect(redactErrorMessage(said(text))).toContain(told);
  });
});

describe("what is said of a header", () => {
  test.each([
    [
      `unknown compression "${SECRET}": supported encodings are gzip`,
      "unknown compression: supported encodings are gzip",
    ],
    [
      `protocol error: invalid connect timeout value: ${SECRET}`,
      "protocol error: invalid connect timeout value",
    ],
    [`protocol error: invalid grpc timeout value: ${SECRET}`, "protocol error: invalid grpc timeout value"],
    [`connect-protocol-version must be "1": got "${SECRET}"`, 'connect-protocol-version must be "1"'],
  ])("is %s without its value", (message, told) => {
    expect(redactErrorMessage(message)).toBe(told);
  });
});

test.each(["parse binary: premature EOF", "protocol error: incomplete envelope", "decompression failed"])(
  "%s is told as it is",
  (message) => {
    expect(redactErrorMessage(message)).toBe(message);
  },
);

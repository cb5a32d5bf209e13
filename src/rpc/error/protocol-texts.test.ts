import { fromJsonString } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import {
  compressionNegotiate,
  createMethodSerializationLookup,
  envelopeDecompress,
  readAllBytes,
} from "@connectrpc/connect/protocol";
import { parseTimeout as parseConnectTimeout } from "@connectrpc/connect/protocol-connect";
import { parseTimeout as parseGrpcTimeout } from "@connectrpc/connect/protocol-grpc";
import { compressionGzip } from "@connectrpc/connect-node";
import { describe, expect, test } from "@jest/globals";
import { CreateProjectRequestSchema } from "#gen/service/v1/project_service_pb.js";
import {
  CreateHostAuthenticationTokenRequestSchema,
  RunnerConfigurationService,
} from "#gen/service/v1/runner_configuration_service_pb.js";
import { readJsonText } from "../request/request-reading.ts";
import { isEngineLimit, isMalformed, redactErrorMessage, sizeLimitIn } from "./protocol-texts.ts";

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
  ])("names the place and not the value of %s", (_, body, shown) => {
    const message = said(JSON.stringify(body));
    expect(redactErrorMessage(message)).toContain(shown);
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
      const shown = redactErrorMessage(said(text));
      expect(shown).toMatch(/JSON/);
      expect(shown).not.toContain("s3cr3t");
    }
  });

  test("does not repeat a key of a map, or a duplicate key", () => {
    const annotations = { annotations: { [SECRET]: 7 } };
    for (const text of [JSON.stringify(annotations), `{"annotations":{"${SECRET}":"","${SECRET}":""}}`]) {
      const message = said(text, CreateProjectRequestSchema as never);
      expect(message).toContain(SECRET);
      expect(redactErrorMessage(message)).toMatch(/: a (?:value of the map has|key comes) /);
      expect(redactErrorMessage(message)).not.toContain(SECRET);
    }
  });

  test.each([
    ['{"hots": "x"}', `${HOST_TOKEN}: key "hots" is unknown`],
    ['{"host": 7}', "expected string"],
    ['{"host": "a", "host": "b"}', `${HOST_TOKEN}: a key comes more than once`],
    ['{"a-b": 1}', `${HOST_TOKEN}: a key is unknown`],
    ["null", `${HOST_TOKEN}: expected an object`],
    ["[{}]", `${HOST_TOKEN}: expected an object`],
    ['"host"', `${HOST_TOKEN}: expected an object`],
    ['{"subject": 7}', "cannot decode message service.v1.Subject from JSON: expected an object"],
    ['{"subject": true}', "cannot decode message service.v1.Subject from JSON: expected an object"],
    ['{"source": "PAT"}', "TokenSource from JSON: expected one of its names, or their numbers"],
    ["{", "at position 1 (line 1 column 2)"],
    [" ", "Unexpected end of JSON input"],
    ['{"host": "x"', "in JSON at position 12 (line 1 column 13)"],
    ['{"expiresAt": "soon"}', "invalid RFC 3339 string"],
    ['{"host": "\\ud800"}', "the escape \\ud800 is half a character without its other half"],
    ['{"scopes": [null]}', "list item must not be null"],
  ])("still tells what is wrong with %s", (text, shown) => {
    expect(redactErrorMessage(said(text))).toContain(shown);
  });
});

/** The text of the error that a function throws or returns. */
async function textOf(fails: () => unknown): Promise<string> {
  try {
    const returned = (await fails()) as { error?: ConnectError } | undefined;
    if (returned?.error) return returned.error.rawMessage;
  } catch (error) {
    return error instanceof ConnectError ? error.rawMessage : (error as Error).message;
  }
  throw new Error("it did not fail");
}

async function* once(bytes: Uint8Array) {
  yield bytes;
}

describe("what is said of a field", () => {
  const REQUEST = "service.v1.CreateHostAuthenticationTokenRequest";

  test.each([
    ['{"refreshToken": 7}', `cannot decode field ${REQUEST}.refreshToken from JSON: expected string`],
    ['{"host": 7}', `cannot decode field ${REQUEST}.host from JSON: expected string`],
  ])("of %s has its JSON name", (text, shown) => {
    expect(redactErrorMessage(said(text))).toMatch(shown);
  });

  test("of a oneof has the JSON names of both", () => {
    const specs = [{ git: {}, contextUrl: {} }];
    const text = JSON.stringify({ initializer: { specs } });
    expect(redactErrorMessage(said(text, CreateProjectRequestSchema as never))).toBe(
      "cannot decode oneof service.v1.EnvironmentInitializer.Spec.spec from JSON: " +
        "oneof set multiple times by git and contextUrl",
    );
  });
});

describe("what is said of a header", () => {
  test.each<[string, () => unknown, string]>([
    [
      "a compression",
      () => compressionNegotiate([compressionGzip], SECRET, null, "accept-encoding"),
      "unknown compression: supported encodings are gzip",
    ],
    [
      "Connect-Timeout-Ms",
      () => parseConnectTimeout(SECRET, 1_000),
      "protocol error: invalid connect timeout value",
    ],
    ["grpc-timeout", () => parseGrpcTimeout(SECRET, 1_000), "protocol error: invalid grpc timeout value"],
  ])("leaves out the value of %s", async (_, fails, shown) => {
    const message = await textOf(fails);
    expect(message).toContain(SECRET);
    expect(redactErrorMessage(message)).toBe(shown);
  });
});

describe("a text of the protocol layer about bytes that it cannot read", () => {
  const envelope = { flags: 1, data: new Uint8Array(3) };
  const { getI } = createMethodSerializationLookup(
    RunnerConfigurationService.method.createHostAuthenticationToken,
    undefined,
    undefined,
    { readMaxBytes: 1_000, writeMaxBytes: 1_000 },
  );

  test.each<[string, () => unknown]>([
    ["a message that ends early", () => getI(true).parse(new Uint8Array([10, 200]))],
    ["bytes that are not compressed", () => compressionGzip.decompress(new Uint8Array([1, 2, 3]), 1_000)],
    ["a compressed envelope without a compression", () => envelopeDecompress(envelope, null, 1_000)],
  ])("is known, and kept as it is: %s", async (_, fails) => {
    const message = await textOf(fails);
    expect([message, isMalformed(message)]).toEqual([message, true]);
    expect(redactErrorMessage(message)).toBe(message);
  });

  test.each<[string, () => unknown]>([
    ["a body", () => readAllBytes(once(new Uint8Array(1_001)), 1_000)],
    ["a body of a known length", () => readAllBytes(once(new Uint8Array(1_001)), 1_000, 1_001)],
    // That of a compressed body is provoked in test/rpc/body-size.test.ts: jest's realm has an Error of its own,
    // by which the package does not recognize the engine's.
  ])("names the limit of %s", async (_, fails) => {
    const message = await textOf(fails);
    expect([message, sizeLimitIn(message)]).toEqual([message, "1000"]);
  });

  test("names no limit where there is none", () => {
    expect(sizeLimitIn("too much")).toBeUndefined();
    expect(isMalformed("unknown compression")).toBe(false);
  });
});

describe("a limit of the engine", () => {
  const deeper = (): number => deeper() + 1;

  // A set and a map of the largest size take a gigabyte each: their texts are not provoked here.
  test.each<[string, () => unknown]>([
    ["of the stack", deeper],
    ["of a text", () => "x".repeat(2 ** 30)],
    ["of a list", () => new Array(-1)],
    ["of bytes", () => new Uint8Array(2 ** 53 - 1)],
    ["of a buffer", () => new ArrayBuffer(2 ** 53 - 1)],
    ["of a number", () => 1n << (2n ** 40n)],
  ])("is known: %s", async (_, fails) => {
    const message = await textOf(fails);
    expect([message, isEngineLimit(message)]).toEqual([message, true]);
    expect(isEngineLimit(`parse binary: ${message}`)).toBe(true);
  });

  test("is not what a caller's bytes are said to be", () => {
    expect(isEngineLimit("parse binary: premature EOF")).toBe(false);
  });
});

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { readOtlpHeaders } from "./otlp-headers.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "chartroom-headers-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

const written = (text: string) => {
  const file = join(folder, "headers");
  writeFileSync(file, text);
  return file;
};
const ofFile = (text: string) => readOtlpHeaders(written(text), {});
const ofVariable = (text: string) => readOtlpHeaders("", { OTEL_EXPORTER_OTLP_HEADERS: text });
const problemOf = (read: () => unknown): string => {
  try {
    read();
  } catch (error) {
    return (error as Error).message;
  }
  return "";
};

describe("the headers for collectors", () => {
  test("come from the file and the variable; of the same name from the file", () => {
    const file = written("# for the collector\n\nAuthorization: Bearer a:b=c\r\nx-scope:  team \n");
    const env = { OTEL_EXPORTER_OTLP_HEADERS: "authorization=Basic%20other, x-more=1=2," };
    expect(readOtlpHeaders(file, env)).toEqual({
      authorization: "Bearer a:b=c",
      "x-scope": "team",
      "x-more": "1=2",
    });
    expect(readOtlpHeaders("", {})).toEqual({});
  });

  test.each([
    ["secret-value", "line 1: it is no name with a value"],
    ["a b: secret-value", "line 1: its name is no name of a header"],
    ["ok: 1\nx: secret-\u0001value", "line 2: its value must have 1 to 8192 printable characters of ASCII"],
    ["x:", "line 1: its value must have 1 to 8192 printable characters of ASCII"],
    ["Content-Type: secret-value", "line 1: content-type is set by the server itself"],
    ["Expect: secret-value", "line 1: expect is set by the server itself"],
  ])("are refused with their place and without a value: %j", (text, problem) => {
    const said = problemOf(() => ofFile(text));
    expect(said).toContain(`--otlp-headers-file ${join(folder, "headers")}, ${problem}`);
    expect(said).not.toContain("secret");
  });

  test("of the variable are refused in the same way", () => {
    const said = problemOf(() => ofVariable("a=1,secret-value,b=%zzsecret"));
    expect(said).toContain("OTEL_EXPORTER_OTLP_HEADERS, pair 2: it is no name with a value");
    expect(said).toContain("OTEL_EXPORTER_OTLP_HEADERS, pair 3: it is no name with a value");
    expect(said).not.toContain("secret");
    expect(problemOf(() => readOtlpHeaders(join(folder, "absent"), {}))).toContain("cannot be read (ENOENT)");
  });

  test.each([
    [15, 8_191, true],
    [16, 8_192, true],
    [17, 1, false],
    [1, 8_193, false],
  ])("are up to 16 of up to 8,192 characters: %i of %i", (count, length, isRead) => {
    const lines = Array.from({ length: count }, (_, index) => `x-${index}: ${"v".repeat(length)}`);
    const said = problemOf(() => ofFile(lines.join("\n")));
    expect(said === "").toBe(isRead);
  });
});

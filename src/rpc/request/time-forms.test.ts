import { describe, expect, test } from "@jest/globals";
import { EnvironmentSchema } from "#gen/service/v1/environment_pb.js";
import { GetProjectRequestSchema, UpdateProjectRequestSchema } from "#gen/service/v1/project_service_pb.js";
import { CreateHostAuthenticationTokenRequestSchema } from "#gen/service/v1/runner_configuration_service_pb.js";
import { timeForms } from "./time-forms.ts";

const expiry = timeForms(CreateHostAuthenticationTokenRequestSchema)?.check;
const timeout = timeForms(UpdateProjectRequestSchema)?.check;

describe("timestamps", () => {
  test.each([
    "2026-01-31T15:04:05Z",
    "2024-02-29T00:00:00Z",
    "0004-02-29T23:59:59.999999999Z",
    "2000-02-29T23:59:59+23:59",
    "9999-12-31T23:59:59-00:00",
  ])("%s is taken", (text) => {
    expect(() => expiry?.({ expiresAt: text })).not.toThrow();
  });

  test.each([
    "2026-02-29T00:00:00Z",
    "2026-02-30T00:00:00Z",
    "1900-02-29T00:00:00Z",
    "2026-04-31T00:00:00Z",
    "2026-00-01T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-01-00T00:00:00Z",
    "2026-01-01T24:00:00Z",
    "2026-01-01T23:60:00Z",
    "2026-06-30T23:59:60Z",
    "2026-01-01T00:00:00+24:00",
    "2026-01-01T00:00:00",
    "2026-01-01T00:00:00.1234567890Z",
    "2026-01-01T00:00:00Z ",
  ])("%s is refused", (text) => {
    expect(() => expiry?.({ expiresAt: text })).toThrow(/expires_at from JSON: expected an existing instant/);
    expect(() => expiry?.({ expires_at: text })).toThrow(/expires_at/);
  });
});

describe("durations", () => {
  test.each(["0s", "3600s", "-1s", "1.000000001s"])("%s is taken", (text) => {
    expect(() => timeout?.({ prebuildConfiguration: { timeout: text } })).not.toThrow();
  });

  test.each([
    "3600s and a half",
    "1800sx",
    "1800s ",
    " 1800s",
    "1800",
    "1e3s",
    "1.s",
    ".5s",
    "1.0000000000s",
    "+1s",
    "--1s",
    "",
  ])("'%s' is refused", (text) => {
    expect(() => timeout?.({ prebuildConfiguration: { timeout: text } })).toThrow(
      /ProjectPrebuildConfiguration.timeout from JSON: expected seconds/,
    );
  });
});

test("what is no text, and what is no message, is left for the parser", () => {
  for (const value of [null, 5, {}, []]) {
    expect(() => timeout?.({ prebuildConfiguration: { timeout: value } })).not.toThrow();
    expect(() => timeout?.({ prebuildConfiguration: value })).not.toThrow();
    expect(() => timeout?.(value)).not.toThrow();
  }
});

test("a message that can hold neither needs no check, and one that can at any depth has one", () => {
  expect(timeForms(GetProjectRequestSchema)).toBeUndefined();
  expect(timeForms(EnvironmentSchema)).toBeDefined();
});

test.each([
  ['{"prebuildConfiguration":{"timeout":"1s"}}', true],
  ['{"prebuildConfiguration":{"timeout" : null}}', true],
  ['{"prebuildConfiguration":{"\\u0074imeout":"1s"}}', true],
  ['{"prebuildConfiguration":{},"name":"the timeout"}', false],
  ["{}", false],
])("whether %s is looked at: %s", (text, isLookedAt) => {
  expect(timeForms(UpdateProjectRequestSchema)?.mayBeIn(text)).toBe(isLookedAt);
});

test("both spellings lead to a look", () => {
  const forms = timeForms(CreateHostAuthenticationTokenRequestSchema);
  for (const text of ['{"expiresAt":""}', '{"expires_at":""}']) expect(forms?.mayBeIn(text)).toBe(true);
});

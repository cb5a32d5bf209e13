import { describe, expect, test } from "@jest/globals";
import { EnvironmentSchema } from "#gen/service/v1/environment_pb.js";
import { UpdateOrganizationPoliciesRequestSchema } from "#gen/service/v1/organization_service_pb.js";
import {
  GetProjectRequestSchema,
  UpdateProjectEnvironmentClassesRequestSchema,
  UpdateProjectRequestSchema,
} from "#gen/service/v1/project_service_pb.js";
import { CreateHostAuthenticationTokenRequestSchema } from "#gen/service/v1/runner_configuration_service_pb.js";
import { valueForms } from "./value-forms.ts";

const expiry = valueForms(CreateHostAuthenticationTokenRequestSchema)?.check;
const timeout = valueForms(UpdateProjectRequestSchema)?.check;

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

describe("integers", () => {
  const order = valueForms(UpdateProjectEnvironmentClassesRequestSchema)?.check;
  const maximum = valueForms(UpdateOrganizationPoliciesRequestSchema)?.check;

  test.each([5, -5, "5", "-5", "05", "1e2", "1.0", 1.5, "9223372036854775807", 9007199254740991, null])(
    "%s is left for the parser",
    (value) => {
      expect(() => order?.({ projectEnvironmentClasses: [{ order: value }] })).not.toThrow();
      expect(() => maximum?.({ maximumEnvironmentsPerUser: value })).not.toThrow();
    },
  );

  test.each(["0x10", "0b11", "0o7", " 7", "7 ", "+7", "", "Infinity", "1_0"])("'%s' is refused", (value) => {
    const refusal = /from JSON: expected decimal digits, such as 25$/;
    expect(() => order?.({ projectEnvironmentClasses: [{ order: value }] })).toThrow(refusal);
    expect(() => maximum?.({ maximumEnvironmentsPerUser: value })).toThrow(refusal);
    expect(() => maximum?.({ maximum_environments_per_user: value })).toThrow(refusal);
  });

  test("of 64 bits are refused as numbers that a double cannot hold", () => {
    for (const value of [2 ** 53, -(2 ** 53), 2 ** 53 + 2, 2 ** 63]) {
      expect(() => maximum?.({ maximumEnvironmentsPerUser: value })).toThrow(
        /expected decimal digits in quotes/,
      );
      expect(() => order?.({ projectEnvironmentClasses: [{ order: value }] })).not.toThrow();
    }
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
  expect(valueForms(GetProjectRequestSchema)).toBeUndefined();
  expect(valueForms(EnvironmentSchema)).toBeDefined();
});

test.each([
  ['{"maximumEnvironmentsPerUser":"5"}', true],
  ['{"maximum_environments_per_user" : "5"}', true],
  ['{"maximumEnvironmentsPerUser":9007199254740993}', true],
  ['{"maximumEnvironmentsPerUser":-9.007199254740993e15}', true],
  ['{"maximumEnvironmentsPerUser":5}', false],
  ['{"maximumEnvironmentsPerUser":900719925474099}', false],
])("whether the integer of %s is looked at: %s", (text, isLookedAt) => {
  expect(valueForms(UpdateOrganizationPoliciesRequestSchema)?.mayBeIn(text)).toBe(isLookedAt);
});

test.each([
  ['{"prebuildConfiguration":{"timeout":"1s"}}', true],
  ['{"prebuildConfiguration":{"timeout" : null}}', true],
  ['{"prebuildConfiguration":{"\\u0074imeout":"1s"}}', true],
  ['{"prebuildConfiguration":{},"name":"the timeout"}', false],
  ["{}", false],
])("whether %s is looked at: %s", (text, isLookedAt) => {
  expect(valueForms(UpdateProjectRequestSchema)?.mayBeIn(text)).toBe(isLookedAt);
});

test("both spellings lead to a look", () => {
  const forms = valueForms(CreateHostAuthenticationTokenRequestSchema);
  for (const text of ['{"expiresAt":""}', '{"expires_at":""}']) expect(forms?.mayBeIn(text)).toBe(true);
});

import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { buf, FINDINGS, ROOT } from "./buf.ts";

let folder = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "chartroom-breaking-"));
  for (const part of ["buf.yaml", "proto", "third_party"]) {
    cpSync(join(ROOT, part), join(folder, part), { recursive: true });
  }
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** The check that scripts/check.ts makes, of the copy. */
function breaking() {
  return buf(["breaking", "proto", "--against", join(ROOT, "api/v1.binpb"), "--exclude-imports"], folder);
}

/** Changes a file of the copy, which must still compile. */
function change(file: string, from: string | RegExp, to: string): void {
  const path = join(folder, "proto/service/v1", file);
  const before = readFileSync(path, "utf8");
  const after = before.replace(from, to);
  if (after === before) throw new Error(`${file} has nothing that reads ${from}`);
  writeFileSync(path, after);
  expect(buf(["build", "proto", "-o", "/dev/null"], folder)).toMatchObject({ code: 0, text: "" });
}

describe("the check against the committed image", () => {
  test("passes for the contract as it is", () => {
    expect(breaking()).toMatchObject({ code: 0, text: "" });
  });

  test("passes when an operation, a message, a field and an enum member are added", () => {
    change(
      "identity.proto",
      "message Subject {",
      "message Added {}\n\nmessage Subject {\n  string note = 1000;",
    );
    change("identity.proto", "PRINCIPAL_RUNNER = 3;", "PRINCIPAL_RUNNER = 3;\n  PRINCIPAL_ADDED = 1000;");
    change(
      "identity_service.proto",
      "service IdentityService {",
      "service IdentityService {\n  rpc Added(service.v1.Added) returns (service.v1.Added);",
    );
    expect(breaking()).toMatchObject({ code: 0, text: "" });
  });

  test.each([
    [
      "an operation is deleted",
      "project_service.proto",
      /rpc GetProject\([^}]*\}/,
      "",
      'Previously present RPC "GetProject" on service "ProjectService" was deleted.',
    ],
    [
      "a field gets another number",
      "project.proto",
      "string technical_description = 8;",
      "string technical_description = 1008;",
      'Previously present field "8" with name "technical_description" on message "Project" was deleted.',
    ],
    [
      "a field gets another type",
      "count.proto",
      "int32 value = 1;",
      "int64 value = 1;",
      'Field "1" with name "value" on message "CountResponse" changed type from "int32" to "int64".',
    ],
    [
      "a field gets another name",
      "project.proto",
      "string technical_description = 8;",
      "string technical_words = 8;",
      'Field "8" on message "Project" changed name from "technical_description" to "technical_words".',
    ],
    [
      "a member of an enum gets another name",
      "identity.proto",
      "PRINCIPAL_RUNNER = 3;",
      "PRINCIPAL_WALKER = 3;",
      'Enum value "3" on enum "Principal" changed name from "PRINCIPAL_RUNNER" to "PRINCIPAL_WALKER".',
    ],
    [
      "a service is deleted",
      "identity_service.proto",
      /service IdentityService \{[\s\S]*?\n\}/,
      "",
      'Previously present service "IdentityService" was deleted from file.',
    ],
  ])("fails when %s", (_, file, from, to, finding) => {
    change(file, from, to);
    const run = breaking();
    expect(run.code).toBe(FINDINGS);
    expect(run.text).toContain(finding);
  });
});

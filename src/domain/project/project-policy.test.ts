import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { OrganizationPoliciesSchema } from "#gen/service/v1/organization_pb.js";
import { RecommendedEditorsSchema } from "#gen/service/v1/project_pb.js";
import type { Role } from "../identity/caller.ts";
import { effectivePolicies } from "../policy/policies.ts";
import type { PolicyDenied } from "../policy/policy-decision.ts";
import { requireEditorsAllowed, requireProjectCreationAllowed } from "./project-policy.ts";

const policies = (set: MessageInitShape<typeof OrganizationPoliciesSchema>) =>
  effectivePolicies("0190c0de-0000-7000-8000-000000000000", {
    policies: create(OrganizationPoliciesSchema, set),
    origins: {},
  });

function denier(act: () => void): string | undefined {
  try {
    act();
    return undefined;
  } catch (error) {
    return (error as PolicyDenied).decision.fieldPath;
  }
}

describe("creating projects", () => {
  const roles: Role[] = ["administrator", "member", "service_account"];
  const mayCreate = (membersCreateProjects: boolean) =>
    roles.filter(
      (role) => !denier(() => requireProjectCreationAllowed(policies({ membersCreateProjects }), role)),
    );

  test("is for everybody, or for administrators alone", () => {
    expect(mayCreate(true)).toEqual(roles);
    expect(mayCreate(false)).toEqual(["administrator"]);
  });
});

describe("recommending editors", () => {
  type Set = MessageInitShape<typeof OrganizationPoliciesSchema>;
  const deniedBy = (set: Set, editors: Record<string, string[]>) =>
    denier(() => {
      const entries = Object.entries(editors).map(([editor, versions]) => [editor, { versions }]);
      requireEditorsAllowed(
        policies(set),
        create(RecommendedEditorsSchema, { editors: Object.fromEntries(entries) }),
      );
    });

  test("is free while nothing is set", () => {
    expect(deniedBy({}, { code: ["1"], vim: [] })).toBeUndefined();
  });

  test("is held to the allowed editors before their versions", () => {
    const set = {
      allowedEditorIds: ["code"],
      editorVersionRestrictions: { code: { allowedVersions: ["2"] } },
    };
    expect(deniedBy(set, { vim: ["1"] })).toBe("allowedEditorIds");
    expect(deniedBy(set, { code: ["1"] })).toBe("editorVersionRestrictions");
    expect(deniedBy(set, { code: ["2"] })).toBeUndefined();
    expect(deniedBy(set, {})).toBeUndefined();
  });

  test.each<[string, boolean]>([
    ["2026", true],
    ["2026.1", true],
    ["2026.1.7", true],
    ["20261", false],
    ["2025", false],
    ["2026-1", false],
    ["", false],
  ])("takes the version %j of an editor at 2026: %j", (version, isAllowed) => {
    const set = { editorVersionRestrictions: { code: { allowedVersions: ["2026"] } } };
    expect(deniedBy(set, { code: [version] })).toBe(isAllowed ? undefined : "editorVersionRestrictions");
  });

  test.each(["vim", "emacs", "constructor"])("names no version of %s, which uses its latest", (editor) => {
    const set = { editorVersionRestrictions: { code: { allowedVersions: ["1"] }, vim: {} } };
    expect(deniedBy(set, { [editor]: [] })).toBeUndefined();
    expect(deniedBy(set, { [editor]: ["1"] })).toBe("editorVersionRestrictions");
  });
});

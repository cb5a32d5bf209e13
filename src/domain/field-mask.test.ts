import { create } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { UpdateOrganizationPoliciesRequestSchema } from "#gen/service/v1/organization_service_pb.js";
import { maskedPaths } from "./field-mask.ts";

const read = (...paths: string[]) =>
  maskedPaths(UpdateOrganizationPoliciesRequestSchema, create(FieldMaskSchema, { paths }), [
    "organization_id",
  ]);

describe("a field mask", () => {
  test("that is absent or empty names nothing", () => {
    expect(maskedPaths(UpdateOrganizationPoliciesRequestSchema, undefined, [])).toEqual(new Set());
    expect(read()).toEqual(new Set());
  });

  test("names fields at any depth, each once", () => {
    const paths = [
      "allowed_editor_ids",
      "agent_policy",
      "agent_policy.command_deny_list",
      "security_agent_policy.endpoint_security.additional_options",
      "maximum_environment_timeout",
    ];
    expect(read(...paths, "agent_policy")).toEqual(new Set(paths));
  });

  test.each([
    "",
    ".",
    "nothing",
    "allowedEditorIds",
    "organization_id",
    "update_mask",
    "update_mask.paths",
    "allowed_editor_ids.0",
    "editor_version_restrictions.code",
    "security_agent_policy.custom_agents.name",
    "agent_policy..mcp_disabled",
    "toString",
    "agent_policy.constructor",
  ])("is refused for the path %j, which it quotes", (path) => {
    expect(() => read("agent_policy", path, "other")).toThrow(
      expect.objectContaining({ reason: ErrorReason.FIELD_MASK_INVALID, metadata: { path } }),
    );
  });
});

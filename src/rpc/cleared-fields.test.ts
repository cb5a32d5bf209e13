import { describe, expect, test } from "@jest/globals";
import { UpdateOrganizationPoliciesRequestSchema as Request } from "#gen/service/v1/organization_service_pb.js";
import { UpdateProjectRequestSchema } from "#gen/service/v1/project_service_pb.js";
import { UpdateHostAuthenticationTokenRequestSchema } from "#gen/service/v1/runner_configuration_service_pb.js";
import { UpdateWorkflowRequestSchema } from "#gen/service/v1/workflow_service_pb.js";
import { addClearedFieldsToMask, hasUpdateMask } from "./cleared-fields.ts";
import { CONTRACT } from "./routes.ts";

const maskOf = (json: object) =>
  (addClearedFieldsToMask(Request, json) as { updateMask?: unknown }).updateMask;

const workflow = (json: object) => addClearedFieldsToMask(UpdateWorkflowRequestSchema, json);

describe("a message of the request that is written out empty", () => {
  test("is cleared where the contract allows no empty one", () => {
    expect(workflow({ report: {} })).toEqual({ updateMask: "report" });
    expect(workflow({ name: "x", report: {}, updateMask: "report,description" })).toEqual({
      name: "x",
      updateMask: "report,description",
    });
    expect(workflow({ report: {}, triggers: [], update_mask: "name" })).toEqual({
      triggers: [],
      update_mask: "name,report,triggers",
    });
  });

  test.each<[string, object]>([
    ["may be empty", { executor: {}, extAgentSettings: {} }],
    ["holds something, if only an empty message", { report: { limits: {} } }],
    ["is null", { report: null }],
    ["is a list", { report: [] }],
    ["is inside another", { action: { limits: {} } }],
    ["is never cleared", { action: {} }],
  ])("is left where it %s", (_, json) => {
    expect(workflow(json)).toBe(json);
  });
});

describe("what a request clears by writing it out empty", () => {
  test("is named for every request that has a mask, and for no other", () => {
    const masked = CONTRACT.flatMap(({ methods }) => methods.map(({ input }) => input)).filter(hasUpdateMask);
    expect(masked.map(({ name }) => name).toSorted()).toEqual(
      [UpdateHostAuthenticationTokenRequestSchema, Request, UpdateWorkflowRequestSchema]
        .map(({ name }) => name)
        .toSorted(),
    );
    const json = { name: "x", recommendedEditors: { editors: {} } };
    expect(addClearedFieldsToMask(UpdateProjectRequestSchema, json)).toBe(json);
  });

  test("is its empty lists and maps, at any depth and in both spellings", () => {
    expect(maskOf({ allowedEditorIds: [] })).toBe("allowedEditorIds");
    expect(maskOf({ editor_version_restrictions: {} })).toBe("editorVersionRestrictions");
    expect(maskOf({ agentPolicy: { commandDenyList: [], allowed_agent_ids: [], mcpDisabled: true } })).toBe(
      "agentPolicy.commandDenyList,agentPolicy.allowedAgentIds",
    );
    expect(maskOf({ security_agent_policy: { endpoint_security: { additional_options: {} } } })).toBe(
      "securityAgentPolicy.endpointSecurity.additionalOptions",
    );
  });

  test("joins what the mask names already, once", () => {
    expect(maskOf({ allowedEditorIds: [], updateMask: "defaultEditorId" })).toBe(
      "defaultEditorId,allowedEditorIds",
    );
    expect(maskOf({ allowedEditorIds: [], updateMask: "allowedEditorIds" })).toBe("allowedEditorIds");
    expect(maskOf({ allowedEditorIds: [], updateMask: "" })).toBe("allowedEditorIds");
    expect(maskOf({ allowedEditorIds: [], updateMask: null })).toBe("allowedEditorIds");
    expect(addClearedFieldsToMask(Request, { allowedEditorIds: [], update_mask: "defaultEditorId" })).toEqual(
      {
        allowedEditorIds: [],
        update_mask: "defaultEditorId,allowedEditorIds",
      },
    );
  });

  test.each<[string, object]>([
    ["lists and maps that hold something", { allowedEditorIds: ["a"], editorVersionRestrictions: { a: {} } }],
    ["null", { allowedEditorIds: null, agentPolicy: null }],
    ["messages that are empty", { agentPolicy: {}, vetoExecPolicy: {} }],
    [
      "what lies inside elements of lists and maps",
      { editorVersionRestrictions: { a: { allowedVersions: [] } } },
    ],
    [
      "values of another kind, which the parser refuses",
      { allowedEditorIds: {}, editorVersionRestrictions: [] },
    ],
    ["fields that do not exist", JSON.parse('{"nothing":[],"toString":[],"__proto__":[]}')],
    ["a mask that is none", { allowedEditorIds: [], updateMask: 7 }],
  ])("is not %s", (_, json) => {
    expect(addClearedFieldsToMask(Request, json)).toBe(json);
  });

  test.each([[null], [7], ["text"], [[]]])("is nothing in %j, which is no message", (json) => {
    expect(addClearedFieldsToMask(Request, json)).toBe(json);
  });
});

import { fromJson, type JsonObject as ProtobufJson } from "@bufbuild/protobuf";
import { type Group, GroupSchema } from "#gen/service/v1/group_pb.js";
import { OrganizationPoliciesSchema } from "#gen/service/v1/organization_pb.js";
import { UpdateOrganizationPoliciesRequestSchema } from "#gen/service/v1/organization_service_pb.js";
import { EnvironmentClassSchema } from "#gen/service/v1/runner_configuration_pb.js";
import { SecurityPolicySchema } from "#gen/service/v1/security_pb.js";
import { WorkflowSchema } from "#gen/service/v1/workflow_pb.js";
import { addClearedFieldsToMask } from "../../rpc/cleared-fields.ts";
import { type ChangeContext, define, type Kind } from "./kind.ts";
import { PROJECT } from "./project-kind.ts";

const WORKFLOW = define<typeof WorkflowSchema>({
  name: "Workflow",
  schema: WorkflowSchema,
  fields: [
    "metadata.name",
    "metadata.description",
    "metadata.executor",
    "metadata.annotations",
    "spec.triggers",
    "spec.action",
    "spec.report",
    "spec.disabled",
    "spec.agentId",
    "spec.extAgentSettings",
    "spec.parameters",
  ],
  nameField: ["metadata", "name"],
  annotationsField: ["metadata", "annotations", "values"],
  documentFields: {
    ...{ name: "metadata.name", description: "metadata.description", executor: "metadata.executor" },
    ...{ annotations: "metadata.annotations", triggers: "spec.triggers", action: "spec.action" },
    ...{ report: "spec.report", disabled: "spec.disabled", agentId: "spec.agentId" },
    ...{ extAgentSettings: "spec.extAgentSettings", parameters: "spec.parameters" },
  },
  create({ metadata, spec }, { id, annotations }) {
    const disabled = { workflowId: id, disabled: true };
    return [
      {
        case: "createWorkflow",
        value: {
          ...{ name: metadata?.name ?? "", description: metadata?.description ?? "" },
          ...{
            triggers: spec?.triggers ?? [],
            parameters: spec?.parameters ?? [],
            agentId: spec?.agentId ?? "",
          },
          ...(spec?.action && { action: spec.action }),
          ...(spec?.report && { report: spec.report }),
          ...(metadata?.executor && { executor: metadata.executor }),
          ...(spec?.extAgentSettings && { extAgentSettings: spec.extAgentSettings }),
          annotations: { values: { ...annotations } },
        },
      },
      ...(spec?.disabled ? [{ case: "updateWorkflow" as const, value: disabled }] : []),
    ];
  },
  update({ metadata, spec }, { id, annotations }) {
    return [
      {
        case: "updateWorkflow",
        value: {
          ...{ workflowId: id, name: metadata?.name ?? "", description: metadata?.description ?? "" },
          ...{
            triggers: spec?.triggers ?? [],
            parameters: spec?.parameters ?? [],
            agentId: spec?.agentId ?? "",
          },
          ...(spec?.action && { action: spec.action }),
          ...(spec?.report && { report: spec.report }),
          // Empty means the creator.
          executor: metadata?.executor ?? {},
          disabled: spec?.disabled ?? false,
          extAgentSettings: spec?.extAgentSettings ?? {},
          annotations: { values: { ...annotations } },
          updateMask: { paths: ["triggers", "parameters", ...(spec?.report ? [] : ["report"])] },
        },
      },
    ];
  },
  remove: (workflowId) => ({ case: "deleteWorkflow", value: { workflowId } }),
  isGone: ({ spec }) => spec?.deleting ?? false,
});

const groupValues = ({ name, description }: Group, { annotations }: ChangeContext) => ({
  ...{ name, description },
  annotations: { values: { ...annotations } },
});

const GROUP = define<typeof GroupSchema>({
  name: "Group",
  schema: GroupSchema,
  fields: ["name", "description", "annotations"],
  nameField: ["name"],
  annotationsField: ["annotations", "values"],
  documentFields: {},
  create: (group, context) => [
    {
      case: "createGroup",
      value: { organizationId: context.organizationId, ...groupValues(group, context) },
    },
  ],
  update: (group, context) => [
    { case: "updateGroup", value: { groupId: context.id, ...groupValues(group, context) } },
  ],
  remove: (groupId) => ({ case: "deleteGroup", value: { groupId } }),
});

const ENVIRONMENT_CLASS = define<typeof EnvironmentClassSchema>({
  name: "EnvironmentClass",
  schema: EnvironmentClassSchema,
  fields: ["displayName", "description", "configuration", "runnerId", "enabled", "annotations"],
  nameField: ["displayName"],
  annotationsField: ["annotations", "values"],
  immutableFields: ["runnerId", "configuration"],
  documentFields: {},
  defaults: { enabled: true },
  create({ runnerId, displayName, description, configuration, enabled }, { id, annotations }) {
    const values = { ...annotations };
    return [
      {
        case: "createEnvironmentClass",
        value: { runnerId, displayName, description, configuration, annotations: { values } },
      },
      ...(enabled
        ? []
        : [{ case: "updateEnvironmentClass" as const, value: { environmentClassId: id, enabled } }]),
    ];
  },
  update: ({ displayName, description, enabled }, { id, annotations }) => [
    {
      case: "updateEnvironmentClass",
      value: {
        ...{ environmentClassId: id, displayName, description, enabled },
        annotations: { values: { ...annotations } },
      },
    },
  ],
  // Classes are not deleted.
  remove: (environmentClassId) => ({
    case: "updateEnvironmentClass",
    value: { environmentClassId, enabled: false },
  }),
  isGone: ({ enabled }) => !enabled,
});

const SECURITY_POLICY = define<typeof SecurityPolicySchema>({
  name: "SecurityPolicy",
  schema: SecurityPolicySchema,
  fields: ["metadata.name", "spec", "annotations"],
  nameField: ["metadata", "name"],
  annotationsField: ["annotations", "values"],
  documentFields: {},
  create: ({ metadata, spec }, { organizationId, annotations }) => [
    {
      case: "createSecurityPolicy",
      value: {
        ...{ organizationId, spec: spec ?? {}, annotations: { values: { ...annotations } } },
        ...(metadata && { metadata }),
      },
    },
  ],
  update: ({ metadata, spec }, { id, annotations }) => [
    {
      case: "updateSecurityPolicy",
      value: {
        ...{ securityPolicyId: id, spec: spec ?? {}, annotations: { values: { ...annotations } } },
        ...(metadata && { metadata }),
      },
    },
  ],
  remove: (securityPolicyId) => ({ case: "deleteSecurityPolicy", value: { securityPolicyId } }),
});

const ORGANIZATION_POLICIES = define<typeof OrganizationPoliciesSchema>({
  name: "OrganizationPolicies",
  schema: OrganizationPoliciesSchema,
  fields: OrganizationPoliciesSchema.fields
    .map(({ jsonName }) => jsonName)
    .filter((name) => name !== "organizationId"),
  documentFields: {},
  // Omitted fields keep their values, so the request contains the document's JSON itself.
  update(_, { organizationId, content }) {
    const json = { ...content, organizationId } as ProtobufJson;
    const request = addClearedFieldsToMask(UpdateOrganizationPoliciesRequestSchema, json) as ProtobufJson;
    const value = fromJson(UpdateOrganizationPoliciesRequestSchema, request);
    return [{ case: "updateOrganizationPolicies", value }];
  },
});

/** The kinds in order of creation: each refers only to earlier ones. */
export const KINDS: readonly Kind[] = [
  ENVIRONMENT_CLASS,
  GROUP,
  SECURITY_POLICY,
  ORGANIZATION_POLICIES,
  PROJECT,
  WORKFLOW,
];

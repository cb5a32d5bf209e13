import type { DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import { GroupService } from "#gen/service/v1/group_service_pb.js";
import { OrganizationService } from "#gen/service/v1/organization_service_pb.js";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import type { ResourceSchema } from "#gen/service/v1/resource_pb.js";
import type { ResourceChange } from "#gen/service/v1/resource_service_pb.js";
import { RunnerConfigurationService } from "#gen/service/v1/runner_configuration_service_pb.js";
import { SecurityService } from "#gen/service/v1/security_service_pb.js";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { findGroup } from "../../../store/identity/group.ts";
import { findPolicies } from "../../../store/policy/organization-policies.ts";
import { findSecurityPolicy } from "../../../store/policy/security-policy.ts";
import { findWholeProject } from "../../../store/project/project.ts";
import { findEnvironmentClass } from "../../../store/runner/environment-class.ts";
import type { Reader, Scope } from "../../../store/store.ts";
import { findWorkflow } from "../../../store/workflow/workflow.ts";

type ReadResource = (
  db: Reader,
  scope: Scope,
  id: string,
) => Promise<MessageInitShape<typeof ResourceSchema> | undefined>;

/** How to make a change of one kind. */
export interface ChangeKind {
  /** The operation whose request the change is. */
  readonly method: DescMethodUnary;
  /** The field of the request with the id of the resource; undefined for a change that creates a resource. */
  readonly idField?: string;
  /** Returns the resource as the transaction sees it; undefined if there is none. */
  readonly read: ReadResource;
}

const readProject: ReadResource = async (db, scope, id) => {
  const value = await findWholeProject(db, scope, id);
  return value && { resource: { case: "project", value } };
};
const readWorkflow: ReadResource = async (db, scope, id) => {
  const value = await findWorkflow(db, scope, id);
  return value && { resource: { case: "workflow", value } };
};
const readGroup: ReadResource = async (db, scope, id) => {
  const value = await findGroup(db, scope, id);
  return value && { resource: { case: "group", value } };
};
const readEnvironmentClass: ReadResource = async (db, scope, id) => {
  const value = await findEnvironmentClass(db, scope, id);
  return value && { resource: { case: "environmentClass", value } };
};
const readSecurityPolicy: ReadResource = async (db, scope, id) => {
  const value = await findSecurityPolicy(db, scope, id);
  return value && { resource: { case: "securityPolicy", value } };
};
/** Reads the policies of the caller's organization; the operation accepts no other id. */
const readPolicies: ReadResource = async (db, scope, id) => {
  if (id !== scope.organizationId) return undefined;
  const { effective: value } = await findPolicies(db, scope);
  return { resource: { case: "organizationPolicies", value } };
};

const { method: projects } = ProjectService;
const { method: workflows } = WorkflowService;
const { method: groups } = GroupService;
const { method: classes } = RunnerConfigurationService;
const { method: securityPolicies } = SecurityService;

/** The kinds of changes, by the field of ResourceChange. */
export const CHANGE_KINDS: Readonly<Record<NonNullable<ResourceChange["change"]["case"]>, ChangeKind>> = {
  createProject: { method: projects.createProject, read: readProject },
  updateProject: { method: projects.updateProject, idField: "projectId", read: readProject },
  updateProjectEnvironmentClasses: {
    method: projects.updateProjectEnvironmentClasses,
    idField: "projectId",
    read: readProject,
  },
  deleteProject: { method: projects.deleteProject, idField: "projectId", read: readProject },
  createWorkflow: { method: workflows.createWorkflow, read: readWorkflow },
  updateWorkflow: { method: workflows.updateWorkflow, idField: "workflowId", read: readWorkflow },
  deleteWorkflow: { method: workflows.deleteWorkflow, idField: "workflowId", read: readWorkflow },
  createGroup: { method: groups.createGroup, read: readGroup },
  updateGroup: { method: groups.updateGroup, idField: "groupId", read: readGroup },
  deleteGroup: { method: groups.deleteGroup, idField: "groupId", read: readGroup },
  createEnvironmentClass: { method: classes.createEnvironmentClass, read: readEnvironmentClass },
  updateEnvironmentClass: {
    method: classes.updateEnvironmentClass,
    idField: "environmentClassId",
    read: readEnvironmentClass,
  },
  createSecurityPolicy: { method: securityPolicies.createSecurityPolicy, read: readSecurityPolicy },
  updateSecurityPolicy: {
    method: securityPolicies.updateSecurityPolicy,
    idField: "securityPolicyId",
    read: readSecurityPolicy,
  },
  deleteSecurityPolicy: {
    method: securityPolicies.deleteSecurityPolicy,
    idField: "securityPolicyId",
    read: readSecurityPolicy,
  },
  updateOrganizationPolicies: {
    method: OrganizationService.method.updateOrganizationPolicies,
    idField: "organizationId",
    read: readPolicies,
  },
};

import {
  type DescEnumValue,
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescService,
  isFieldSet,
  ScalarType,
} from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { MethodOptions_IdempotencyLevel as Idempotency, MethodOptionsSchema } from "@bufbuild/protobuf/wkt";
import { type FieldRules, Ignore } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { describe, expect, test } from "@jest/globals";
import { CONTRACT } from "../../src/rpc/routes.ts";
import { isId, rulesOf } from "../../src/rpc/rules.ts";
import { compile } from "./buf.ts";
import { leadingComment } from "./comments.ts";
import { boundOf } from "./largest-request.ts";
import { reachFrom } from "./reach.ts";

// The fifteen operations of the specification.
const SPECIFIED = [
  "AccountService/BlockAccount",
  "AgentService/SendToAgentExecution",
  "AgentService/StartAgent",
  "OrganizationService/GetOrganizationPolicies",
  "OrganizationService/UpdateOrganizationPolicies",
  "ProjectService/CreateProject",
  "ProjectService/CreateProjectFromEnvironment",
  "ProjectService/CreateProjects",
  "ProjectService/GetProject",
  "ProjectService/ListProjects",
  "ProjectService/UpdateProject",
  "ProjectService/UpdateProjects",
  "RunnerConfigurationService/CreateHostAuthenticationToken",
  "WorkflowService/StartWorkflow",
  "WorkflowService/UpdateWorkflow",
];

// What projects need around them.
const ADDED = [
  "EnvironmentService/ArchiveEnvironment",
  "EnvironmentService/CreateEnvironment",
  "EnvironmentService/CreateEnvironmentFromProject",
  "EnvironmentService/DeleteEnvironment",
  "EnvironmentService/GetEnvironment",
  "EnvironmentService/ListEnvironmentClasses",
  "EnvironmentService/ListEnvironments",
  "EnvironmentService/StartEnvironment",
  "EnvironmentService/StopEnvironment",
  "EnvironmentService/UnarchiveEnvironment",
  "EnvironmentService/UpdateEnvironment",
  "IdentityService/GetAuthenticatedIdentity",
  "PrebuildService/CancelPrebuild",
  "PrebuildService/CreatePrebuild",
  "PrebuildService/DeletePrebuild",
  "PrebuildService/GetPrebuild",
  "PrebuildService/ListPrebuilds",
  "ProjectService/DeleteProject",
  "ProjectService/ListProjectEnvironmentClasses",
  "ProjectService/UpdateProjectEnvironmentClasses",
  "RunnerConfigurationService/CreateEnvironmentClass",
  "RunnerConfigurationService/GetEnvironmentClass",
  "RunnerConfigurationService/ListEnvironmentClasses",
  "RunnerConfigurationService/UpdateEnvironmentClass",
  "RunnerService/CreateRunner",
  "RunnerService/CreateRunnerToken",
  "RunnerService/DeleteRunner",
  "RunnerService/GetRunner",
  "RunnerService/ListRunners",
  "RunnerService/UpdateRunner",
  "RunnerService/ParseContextURL",
  "RunnerService/CheckRepositoryAccess",
  "UserService/CreatePersonalAccessToken",
  "UserService/DeletePersonalAccessToken",
  "UserService/ListPersonalAccessTokens",
];

// What accounts, organizations, credentials and the record need.
const GOVERNING = [
  "AccountService/GetAccount",
  "AccountService/UnblockAccount",
  "EventService/GetAuditLog",
  "EventService/ListAuditLogs",
  "EventService/WatchEvents",
  "EventSubscriptionService/CreateEventSubscription",
  "EventSubscriptionService/DeleteEventSubscription",
  "EventSubscriptionService/GetEventSubscription",
  "EventSubscriptionService/ListEventDeliveries",
  "EventSubscriptionService/ListEventSubscriptions",
  "EventSubscriptionService/RedeliverEvent",
  "EventSubscriptionService/RotateEventSubscriptionSecret",
  "EventSubscriptionService/UpdateEventSubscription",
  "GroupService/CreateGroup",
  "GroupService/CreateMembership",
  "GroupService/CreateRoleAssignment",
  "GroupService/DeleteGroup",
  "GroupService/DeleteMembership",
  "GroupService/DeleteRoleAssignment",
  "GroupService/GetGroup",
  "GroupService/GetMembership",
  "GroupService/ListGroups",
  "GroupService/ListMemberships",
  "GroupService/ListRoleAssignments",
  "GroupService/UpdateGroup",
  "GroupService/UpdateRoleAssignment",
  "OrganizationService/CreateOrganization",
  "OrganizationService/CreateOrganizationInvite",
  "OrganizationService/GetOrganizationInvite",
  "OrganizationService/GetOrganizationInviteSummary",
  "OrganizationService/JoinOrganization",
  "OrganizationService/LeaveOrganization",
  "OrganizationService/UpdateOrganization",
  "OrganizationService/GetOrganization",
  "OrganizationService/ListMembers",
  "OrganizationService/GetServerHealth",
  "OrganizationService/PreviewOrganizationPolicies",
  "OrganizationService/PreviewRetention",
  "OrganizationService/RemoveMember",
  "OrganizationService/SetRole",
  "RunnerConfigurationService/DeleteHostAuthenticationToken",
  "RunnerConfigurationService/GetHostAuthenticationToken",
  "RunnerConfigurationService/ListHostAuthenticationTokens",
  "RunnerConfigurationService/UpdateHostAuthenticationToken",
  "ResourceService/ApplyChanges",
  "ResourceService/PreviewChanges",
  "SecretService/CreateSecret",
  "SecretService/DeleteSecret",
  "SecretService/ListSecrets",
  "SecretService/UpdateSecretValue",
  "SecurityService/CreateSecurityPolicy",
  "SecurityService/DeleteSecurityPolicy",
  "SecurityService/GetSecurityPolicy",
  "SecurityService/ListSecurityPolicies",
  "SecurityService/UpdateSecurityPolicy",
  "ServiceAccountService/CreateServiceAccount",
  "ServiceAccountService/CreateServiceAccountToken",
  "ServiceAccountService/CreateServiceAccountTrust",
  "ServiceAccountService/DeleteServiceAccount",
  "ServiceAccountService/DeleteServiceAccountToken",
  "ServiceAccountService/DeleteServiceAccountTrust",
  "ServiceAccountService/ListServiceAccountTokens",
  "ServiceAccountService/ListServiceAccountTrusts",
  "ServiceAccountService/ListServiceAccounts",
  "UserService/GetAuthenticatedUser",
  "UserService/GetUser",
  "UserService/ListSessions",
  "UserService/RevokeSession",
  "UserService/RenewPersonalAccessToken",
  "UserService/SetSuspended",
];

// What workflows need around them.
const WORKFLOWS = [
  "WorkflowService/CancelWorkflowExecution",
  "WorkflowService/CancelWorkflowExecutionAction",
  "WorkflowService/CreateWorkflow",
  "WorkflowService/DeleteWorkflow",
  "WorkflowService/GetWorkflow",
  "WorkflowService/GetWorkflowExecution",
  "WorkflowService/GetWorkflowExecutionAction",
  "WorkflowService/GetWorkflowExecutionSummary",
  "WorkflowService/GetWorkflowWebhookSecret",
  "WorkflowService/ListPullRequests",
  "WorkflowService/ListWorkflowExecutionActions",
  "WorkflowService/ListWorkflowExecutionOutputs",
  "WorkflowService/ListWorkflowExecutions",
  "WorkflowService/ListWorkflowTriggerEvents",
  "WorkflowService/ListWorkflows",
  "WorkflowService/PreviewWorkflow",
  "WorkflowService/RedeliverWorkflowTriggerEvent",
  "WorkflowService/RetryFailedActions",
  "WorkflowService/RotateWorkflowWebhookSecret",
  "WorkflowService/StreamActionLogs",
];

// What agents need around them.
const AGENTS = [
  "AgentReviewService/CreateAgentReviewDraft",
  "AgentReviewService/DeleteAgentReviewDraft",
  "AgentReviewService/ListAgentReviewDrafts",
  "AgentReviewService/ListAgentReviews",
  "AgentReviewService/UpdateAgentReviewDraft",
  "AgentService/CreateAgent",
  "AgentService/DeleteAgent",
  "AgentService/DeleteAgentExecution",
  "AgentService/ForkAgentExecution",
  "AgentService/GetAgentExecution",
  "AgentService/ListAgentExecutions",
  "AgentService/ListAgentInputs",
  "AgentService/ListAgentOutputBlocks",
  "AgentService/ListAgents",
  "AgentService/StopAgentExecution",
  "AgentService/UpdateAgent",
  "AgentService/WatchAgentExecution",
];

// What is seen of environments, and taken out of them.
const ENVIRONMENTS = [
  "EnvironmentService/GetEnvironmentChanges",
  "EnvironmentService/GetEnvironmentDiff",
  "EnvironmentService/ListEnvironmentConnections",
  "EnvironmentService/ListEnvironmentFiles",
  "EnvironmentService/OpenPullRequest",
  "EnvironmentService/PushEnvironmentBranch",
  "EnvironmentService/ReadEnvironmentFile",
];

// What people are asked.
const APPROVALS = [
  "ApprovalService/DecideApproval",
  "ApprovalService/GetApproval",
  "ApprovalService/ListApprovals",
];

// What runners call; a package of its own, runner.v1.
const WORK = [
  "AgentWorkService/GetStepAgent",
  "AgentWorkService/ReportAgent",
  "AgentWorkService/ReportAgents",
  "AgentWorkService/RequestApproval",
  "AgentWorkService/StartStepAgent",
  "AgentWorkService/StartSubagent",
  "AgentWorkService/StreamInputs",
  "EnvironmentWorkService/AnswerRequest",
  "EnvironmentWorkService/GetQuestionCredential",
  "EnvironmentWorkService/ReportEnvironmentChanges",
  "EnvironmentWorkService/ReportEnvironmentConnections",
  "EnvironmentWorkService/WatchRequests",
  "WorkService/BeginInstance",
  "WorkService/FinishWork",
  "WorkService/GetHostCredential",
  "WorkService/Heartbeat",
  "WorkService/LeaseWork",
  "WorkService/Register",
  "WorkService/RenewLease",
  "WorkService/RenewLeases",
  "WorkService/ReportProgress",
  "WorkService/ReportWorks",
];

// What the Versioning part of the specification and the wire reference call deprecated.
const DEPRECATED = [
  "AdmissionLevel.ADMISSION_LEVEL_OWNER_ONLY",
  "AgentExecutionFailureReason.AGENT_EXECUTION_FAILURE_REASON_INTERNAL",
  "AuditLogEntryKind.AUDIT_LOG_ENTRY_KIND_AGENT_SECURITY_EXEC_AUDITED",
  "AuditLogEntryKind.AUDIT_LOG_ENTRY_KIND_AGENT_SECURITY_EXEC_BLOCKED",
  "CreateHostAuthenticationTokenRequest.user_id",
  "CreateSecretRequest.project_id",
  "ExtAgentModel.EXT_AGENT_MODEL_3",
  "ExtAgentModel.EXT_AGENT_MODEL_4",
  "ExtAgentModel.EXT_AGENT_MODEL_5",
  "ExtAgentModel.EXT_AGENT_MODEL_6",
  "GetGroupRequest.group_id",
  "HostAuthenticationToken.user_id",
  "ListHostAuthenticationTokensRequest.Filter.user_id",
  "ListSecretsRequest.Filter.project_ids",
  "Project.environment_class",
  "RunnerKind.RUNNER_KIND_LOCAL",
  "Secret.project_id",
  "UserInputBlock.image",
  "UserInputBlock.text",
  "WorkflowExecution.Status.failure_message",
  "WorkflowExecution.Status.warning_message",
  "WorkflowExecutionAction.Status.StepStatus.failure_message",
  "WorkflowExecutionAction.Status.failure_message",
  "WorkflowExecutionAction.Status.warning_message",
];

const PACKAGES = ["runner.v1", "service.v1"];
const files = [...compile("proto").files].filter((file) => PACKAGES.includes(file.proto.package));
const types = files.flatMap((file) => [...nestedTypes(file)]);
const services = types.filter((type): type is DescService => type.kind === "service");
const methods = services.flatMap((service) => service.methods);
const inputs = [...new Set(methods.map(({ input }) => input))];

function operation({ parent, name }: DescMethod): string {
  return `${parent.name}/${name}`;
}

describe("the operations of the contract", () => {
  test("are the specified ones and those that projects need around them", () => {
    const all = [
      ...SPECIFIED,
      ...ADDED,
      ...GOVERNING,
      ...WORKFLOWS,
      ...AGENTS,
      ...ENVIRONMENTS,
      ...APPROVALS,
      ...WORK,
    ];
    expect(methods.map(operation).sort()).toEqual(all.sort());
  });

  test("are all routed", () => {
    const routed = CONTRACT.map(({ typeName }) => typeName);
    expect(routed.toSorted()).toEqual(services.map(({ typeName }) => typeName).sort());
  });

  test.each(methods.map((method) => [operation(method), method] as const))(
    "%s states its idempotency level, and is unary unless it watches or streams",
    (_, { name, proto, methodKind }) => {
      expect(proto.options && isFieldSet(proto.options, MethodOptionsSchema.field.idempotencyLevel)).toBe(
        true,
      );
      expect(methodKind).toBe(/^(Watch|Stream)[A-Z]/.test(name) ? "server_streaming" : "unary");
    },
  );

  test("those without side effects are the ones that get, list, preview, read, parse, check or stream, and no others", () => {
    const readers = methods.filter(({ idempotency }) => idempotency === Idempotency.NO_SIDE_EFFECTS);
    const named = methods.filter(
      ({ name, output }) =>
        /^(Get|List|Preview|Read|Parse|Check|Stream|Watch)[A-Z]/.test(name) && !answersSecret(output),
    );
    // A credential that a runner gets is recorded in the audit trail, inputs that it gets have been delivered, and the stream
    // of its questions ends the one before.
    const recorded = [
      "WorkService/GetHostCredential",
      "AgentWorkService/StreamInputs",
      "EnvironmentWorkService/WatchRequests",
    ];
    expect(readers.map(operation)).toEqual(named.map(operation).filter((name) => !recorded.includes(name)));
  });

  test("those that answer a secret have side effects", () => {
    const secret = methods.filter(({ output }) => answersSecret(output));
    expect(secret.map(operation)).toEqual(
      expect.arrayContaining([
        "RunnerService/CreateRunner",
        "RunnerService/CreateRunnerToken",
        "ServiceAccountService/CreateServiceAccountToken",
        "UserService/CreatePersonalAccessToken",
        "WorkflowService/GetWorkflowWebhookSecret",
        "WorkflowService/RotateWorkflowWebhookSecret",
      ]),
    );
    expect(secret.filter(({ idempotency }) => idempotency === Idempotency.NO_SIDE_EFFECTS)).toEqual([]);
  });
});

function answersSecret(output: DescMessage): boolean {
  return reachFrom(output).some(
    ({ field }) =>
      field.scalar === ScalarType.STRING &&
      ["token", "exchange_token", "secret", "invite_id"].includes(field.name),
  );
}

describe("what a request can carry", () => {
  const reached = inputs.flatMap(reachFrom);

  test("is bounded wherever it has a length", () => {
    const unbounded = reached.filter(({ field }) => !isBounded(field));
    expect(unbounded.map(({ path }) => path)).toEqual([]);
  });

  test("takes defined members of enums only, also in lists and maps, but for what newer runners keep", () => {
    const enums = reached.filter(({ field }) => field.enum);
    expect(enums.map(({ field }) => field.fieldKind)).toEqual(
      expect.arrayContaining(["enum", "list", "map"]),
    );
    const open = enums.filter(({ field }) => {
      const rules = elementRules(field);
      return rules?.type.case !== "enum" || !rules.type.value.definedOnly;
    });
    expect(open.map(({ path }) => path).sort()).toEqual([
      "HeartbeatRequest.keptPolicies.policies",
      "RegisterRequest.keptPolicies.policies",
    ]);
  });

  test("is held against its rules everywhere but in the elements of the two batches", () => {
    const ignored = reached.filter(({ field }) =>
      [rulesOf(field), elementRules(field)].some((rules) => rules?.ignore === Ignore.ALWAYS),
    );
    expect(ignored.map(({ path }) => path).sort()).toEqual([
      "CreateProjectsRequest.projects",
      "UpdateProjectsRequest.projects",
    ]);
  });
});

/** The rules of a value, of a list's items or of a map's values. */
function elementRules(field: DescField): FieldRules | undefined {
  const type = rulesOf(field)?.type;
  if (field.fieldKind === "list") return type?.case === "repeated" ? type.value.items : undefined;
  if (field.fieldKind === "map") return type?.case === "map" ? type.value.values : undefined;
  return rulesOf(field);
}

function isBounded(field: DescField): boolean {
  const rules = rulesOf(field);
  if (field.fieldKind === "list" && boundOf(rules, "list") === undefined) return false;
  if (field.fieldKind === "map") {
    const keys = rules?.type.case === "map" ? rules.type.value.keys : undefined;
    if (boundOf(rules, "map") === undefined || !isTextBounded(keys)) return false;
  }
  const element = elementRules(field);
  if (field.scalar === ScalarType.STRING) return isTextBounded(element);
  return field.scalar !== ScalarType.BYTES || boundOf(element, "bytes") !== undefined;
}

function isTextBounded(rules: FieldRules | undefined): boolean {
  const isChoice = rules?.type.case === "string" && rules.type.value.in.length > 0;
  return isChoice || isId(rules) || boundOf(rules, "text") !== undefined;
}

describe("what is deprecated", () => {
  const elements = types.flatMap((type): (DescField | DescEnumValue)[] => {
    if (type.kind === "message") return type.fields;
    return type.kind === "enum" ? type.values : [];
  });

  test("is what the specification and the wire reference say", () => {
    expect(
      elements
        .filter(({ deprecated }) => deprecated)
        .map(fullName)
        .sort(),
    ).toEqual(DEPRECATED);
  });

  test("says what to use instead, and nothing else does", () => {
    const advised = elements.filter((element) => /Deprecated: use \S/.test(leadingComment(element)));
    expect(advised.map(fullName).sort()).toEqual(DEPRECATED);
  });
});

function fullName({ parent, name }: DescField | DescEnumValue): string {
  return `${parent.typeName.replace("service.v1.", "")}.${name}`;
}

describe("every file of the contract", () => {
  test.each(files.map((file) => [file.name, file] as const))(
    "%s says where generated code goes",
    (_, file) => {
      const [name = "", version = ""] = file.proto.package.split(".");
      expect(file.proto.options).toMatchObject({
        goPackage: `chartroom.example/gen/${name}/${version};${name}${version}`,
        javaPackage: `chartroom.${name}.${version}`,
        javaMultipleFiles: true,
      });
    },
  );
});

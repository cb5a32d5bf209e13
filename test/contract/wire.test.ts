import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  getOption,
  type JsonObject,
  type JsonValue,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import {
  FieldRulesSchema,
  MessageRulesSchema,
  message as messageRules,
  oneof as oneofRules,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { describe, expect, test } from "@jest/globals";
import { rulesOf } from "../../src/rpc/rules.ts";
import { compile, ROOT } from "./buf.ts";
import { parseWirePage, type WireField, type WireMessage } from "./wire-page.ts";

/** The pages that the contract is held against, as they were handed over. */
const NAMES = ["wire.md", "wire-2.md"];
const pages = NAMES.map((name) => parseWirePage(readFileSync(join(import.meta.dirname, name), "utf8")));
const page = {
  operations: pages.flatMap((each) => each.operations),
  types: pages.flatMap((each) => each.types),
};

const PACKAGE = "service.v1.";
const types = new Map<string, DescMessage | DescEnum>();
const operations = new Map<string, { input: string; output: string }>();
for (const source of compile("proto").files) {
  if (source.proto.package !== "service.v1") continue;
  for (const type of nestedTypes(source)) {
    if (type.kind === "message" || type.kind === "enum") types.set(short(type.typeName), type);
    if (type.kind !== "service") continue;
    for (const { name, input, output } of type.methods) {
      operations.set(`${type.name}/${name}`, { input: input.name, output: output.name });
    }
  }
}

/**
 * What we add to the page: the removal of a member, the ledger of triggers,
 * retries and logs of workflows, what wakes the parent of a sub-agent, approvals, and what errors carry.
 */
const OWN_OPERATIONS = [
  "AgentReviewService/CreateAgentReviewDraft",
  "AgentReviewService/DeleteAgentReviewDraft",
  "AgentReviewService/ListAgentReviewDrafts",
  "AgentReviewService/ListAgentReviews",
  "AgentReviewService/UpdateAgentReviewDraft",
  "AgentService/CreateAgent",
  "AgentService/DeleteAgent",
  "AgentService/ForkAgentExecution",
  "AgentService/ListAgentInputs",
  "AgentService/ListAgentOutputBlocks",
  "AgentService/ListAgents",
  "AgentService/UpdateAgent",
  "AgentService/WatchAgentExecution",
  "ApprovalService/DecideApproval",
  "ApprovalService/GetApproval",
  "ApprovalService/ListApprovals",
  "EnvironmentService/GetEnvironmentChanges",
  "EnvironmentService/GetEnvironmentDiff",
  "EnvironmentService/ListEnvironmentConnections",
  "EnvironmentService/ListEnvironmentFiles",
  "EnvironmentService/OpenPullRequest",
  "EnvironmentService/PushEnvironmentBranch",
  "EnvironmentService/ReadEnvironmentFile",
  "EventSubscriptionService/CreateEventSubscription",
  "EventSubscriptionService/DeleteEventSubscription",
  "EventSubscriptionService/GetEventSubscription",
  "EventSubscriptionService/ListEventDeliveries",
  "EventSubscriptionService/ListEventSubscriptions",
  "EventSubscriptionService/RedeliverEvent",
  "EventSubscriptionService/RotateEventSubscriptionSecret",
  "EventSubscriptionService/UpdateEventSubscription",
  "GroupService/CreateRoleAssignment",
  "GroupService/DeleteRoleAssignment",
  "GroupService/ListRoleAssignments",
  "GroupService/UpdateRoleAssignment",
  "OrganizationService/GetServerHealth",
  "OrganizationService/PreviewOrganizationPolicies",
  "OrganizationService/PreviewRetention",
  "OrganizationService/RemoveMember",
  "ResourceService/ApplyChanges",
  "ResourceService/PreviewChanges",
  "ServiceAccountService/CreateServiceAccountTrust",
  "ServiceAccountService/DeleteServiceAccountTrust",
  "ServiceAccountService/ListServiceAccountTrusts",
  "UserService/ListSessions",
  "UserService/RenewPersonalAccessToken",
  "UserService/RevokeSession",
  "WorkflowService/ListPullRequests",
  "WorkflowService/ListWorkflowTriggerEvents",
  "WorkflowService/PreviewWorkflow",
  "WorkflowService/RedeliverWorkflowTriggerEvent",
  "WorkflowService/RetryFailedActions",
  "WorkflowService/StreamActionLogs",
];
const OWN_TYPES = [
  "Agent",
  "AgentApprovalPolicy",
  "AgentApprovalPolicy.Effect",
  "AgentApprovalPolicy.Origin",
  "AgentApprovalPolicy.Rule",
  "AgentApprovalPolicy.Steps",
  "AgentControlInput.GoOn",
  "AgentControlInput.RetryTurn",
  "AgentDefinition",
  "AgentExecution.Status.LostTurn",
  "AgentExecution.Status.Slot",
  "AgentForkAbility",
  "AgentInput",
  "AgentInputReceipt",
  "AgentKind",
  "AgentOutputBlock",
  "AgentOutputBlock.Error",
  "AgentOutputBlock.FileChange",
  "AgentOutputBlock.FileChange.Kind",
  "AgentOutputBlock.Plan",
  "AgentOutputBlock.Plan.Entry",
  "AgentOutputBlock.Plan.Priority",
  "AgentOutputBlock.Plan.State",
  "AgentOutputBlock.Question",
  "AgentOutputBlock.Question.State",
  "AgentOutputBlock.Text",
  "AgentOutputBlock.Thought",
  "AgentOutputBlock.ToolCall",
  "AgentOutputBlock.ToolCall.Diff",
  "AgentOutputBlock.ToolCall.Kind",
  "AgentOutputBlock.ToolCall.Location",
  "AgentOutputBlock.ToolCall.State",
  "AgentOutputBlock.ToolRequest",
  "AgentOutputBlock.Usage",
  "AgentOutputBlock.Usage.Cost",
  "AgentOutputView",
  "AgentReview",
  "AgentReviewComment",
  "AgentReviewComment.Present",
  "AgentReviewComment.Quote",
  "AgentReviewComment.Side",
  "AgentReviewComment.State",
  "AgentReviewDraft",
  "Annotations",
  "ApplyChangesRequest",
  "ApplyChangesResponse",
  "Approval",
  "Approval.Asker",
  "ApprovalDeciders",
  "ApprovalDeciders.Who",
  "ApprovalDecision",
  "ApprovalKind",
  "ApprovalOption",
  "ApprovalOption.Kind",
  "ApprovalOutcome",
  "ApprovalPush",
  "ApprovalPush.PullRequest",
  "ApprovalQuestion",
  "ApprovalState",
  "ApprovalStep",
  "ApprovalToolCall",
  "ChangeCounts",
  "ChangedResource",
  "CreateAgentRequest",
  "CreateAgentResponse",
  "CreateAgentReviewDraftRequest",
  "CreateAgentReviewDraftResponse",
  "CreateEventSubscriptionRequest",
  "CreateEventSubscriptionResponse",
  "CreateRoleAssignmentRequest",
  "CreateRoleAssignmentResponse",
  "CreateServiceAccountTrustRequest",
  "CreateServiceAccountTrustResponse",
  "DecideApprovalRequest",
  "DecideApprovalRequest.Decision",
  "DecideApprovalResponse",
  "DeleteAgentRequest",
  "DeleteAgentResponse",
  "DeleteAgentReviewDraftRequest",
  "DeleteAgentReviewDraftResponse",
  "DeleteEventSubscriptionRequest",
  "DeleteEventSubscriptionResponse",
  "DeleteRoleAssignmentRequest",
  "DeleteRoleAssignmentResponse",
  "DeleteServiceAccountTrustRequest",
  "DeleteServiceAccountTrustResponse",
  "DiffBase",
  "EgressHostSet",
  "EgressPolicy",
  "EgressPolicy.Host",
  "EnvironmentChanges",
  "EnvironmentConnection",
  "EnvironmentConnection.Refusal",
  "EnvironmentFile",
  "EnvironmentFile.Kind",
  "EnvironmentFileDiff",
  "EnvironmentFileDiff.Kind",
  "EnvironmentFileDiff.PatchOmission",
  "EnvironmentPush",
  "EnvironmentPush.Outcome",
  "EnvironmentPush.Progress",
  "EnvironmentPush.Stage",
  "EnvironmentPush.State",
  "ErrorDetail",
  "ErrorReason",
  "EventDelivery",
  "EventDelivery.Attempt",
  "EventDeliveryState",
  "EventDeliveryVerdict",
  "EventFormat",
  "EventSubscription",
  "EventSubscriptionState",
  "FollowedPullRequest",
  "ForkAgentExecutionRequest",
  "ForkAgentExecutionResponse",
  "ForkApproval",
  "ForkEgress",
  "ForkWork",
  "GetApprovalRequest",
  "GetApprovalResponse",
  "GetEnvironmentChangesRequest",
  "GetEnvironmentChangesResponse",
  "GetEnvironmentDiffRequest",
  "GetEnvironmentDiffResponse",
  "GetEventSubscriptionRequest",
  "GetEventSubscriptionResponse",
  "GetServerHealthRequest",
  "GetServerHealthResponse",
  "GetServerHealthResponse.Check",
  "GetServerHealthResponse.Figure",
  "KeptPolicies",
  "ListAgentInputsRequest",
  "ListAgentInputsResponse",
  "ListAgentOutputBlocksRequest",
  "ListAgentOutputBlocksResponse",
  "ListAgentReviewDraftsRequest",
  "ListAgentReviewDraftsResponse",
  "ListAgentReviewsRequest",
  "ListAgentReviewsResponse",
  "ListAgentsRequest",
  "ListAgentsResponse",
  "ListApprovalsRequest",
  "ListApprovalsRequest.Filter",
  "ListApprovalsResponse",
  "ListAuditLogsResponse.AuditLogEntry.Change",
  "ListEnvironmentConnectionsRequest",
  "ListEnvironmentConnectionsResponse",
  "ListEnvironmentFilesRequest",
  "ListEnvironmentFilesResponse",
  "ListEventDeliveriesRequest",
  "ListEventDeliveriesRequest.Filter",
  "ListEventDeliveriesResponse",
  "ListEventSubscriptionsRequest",
  "ListEventSubscriptionsResponse",
  "ListPullRequestsRequest",
  "ListPullRequestsRequest.Filter",
  "ListPullRequestsResponse",
  "ListRoleAssignmentsRequest",
  "ListRoleAssignmentsResponse",
  "ListServiceAccountTrustsRequest",
  "ListServiceAccountTrustsResponse",
  "ListSessionsRequest",
  "ListSessionsResponse",
  "ListWorkflowTriggerEventsRequest",
  "ListWorkflowTriggerEventsRequest.Filter",
  "ListWorkflowTriggerEventsResponse",
  "OpenPullRequestRequest",
  "OpenPullRequestResponse",
  "PolicyDecision",
  "PreviewChangesRequest",
  "PreviewChangesResponse",
  "PreviewOrganizationPoliciesRequest",
  "PreviewOrganizationPoliciesResponse",
  "PreviewOrganizationPoliciesResponse.Effect",
  "PreviewOrganizationPoliciesResponse.Outcome",
  "PreviewOrganizationPoliciesResponse.Resource",
  "PreviewRetentionRequest",
  "PreviewRetentionResponse",
  "PreviewRetentionResponse.Kind",
  "PreviewWorkflowRequest",
  "PreviewWorkflowResponse",
  "PreviewWorkflowResponse.Refusal",
  "PreviewWorkflowResponse.Search",
  "PreviewWorkflowResponse.Source",
  "PullRequest.Origin",
  "PullRequestChecks",
  "PullRequestFollowing",
  "PushEnvironmentBranchRequest",
  "PushEnvironmentBranchResponse",
  "PushRules",
  "PushRules.Rule",
  "ReadEnvironmentFileRequest",
  "ReadEnvironmentFileResponse",
  "RedeliverEventRequest",
  "RedeliverEventResponse",
  "RedeliverWorkflowTriggerEventRequest",
  "RedeliverWorkflowTriggerEventResponse",
  "RemoveMemberRequest",
  "RemoveMemberResponse",
  "RenewPersonalAccessTokenRequest",
  "RenewPersonalAccessTokenResponse",
  "RepositoryChanges",
  "Resource",
  "ResourceChange",
  "ResourceRole",
  "RetentionLimit",
  "RetentionPolicy",
  "RetryFailedActionsRequest",
  "RetryFailedActionsResponse",
  "RevokeSessionRequest",
  "RevokeSessionResponse",
  "RoleAssignment",
  "RotateEventSubscriptionSecretRequest",
  "RotateEventSubscriptionSecretResponse",
  "RunnerIsolation",
  "RunnerPolicy",
  "ServiceAccountTrust",
  "ServiceAccountTrust.Condition",
  "Session",
  "StreamActionLogsRequest",
  "StreamActionLogsResponse",
  "ToolKind",
  "TraceContext",
  "TriggerVerdict",
  "UpdateAgentRequest",
  "UpdateAgentResponse",
  "UpdateAgentReviewDraftRequest",
  "UpdateAgentReviewDraftResponse",
  "UpdateEventSubscriptionRequest",
  "UpdateEventSubscriptionResponse",
  "UpdateRoleAssignmentRequest",
  "UpdateRoleAssignmentResponse",
  "WakeEvent.SubagentStopped",
  "WatchAgentExecutionRequest",
  "WatchAgentExecutionResponse",
  "WatchEventsResponse.HistoryPruned",
  "Workflow.NextInstants",
  "WorkflowExecutionConclusion",
  "WorkflowParameter",
  "WorkflowStep.Approval",
  "WorkflowTrigger.OverlapPolicy",
  "WorkflowTriggerEvent",
  "WorkflowTriggerEvent.Source",
];

/** What the specification quotes for them: a rule in CEL replaces the standard one of the page. */
const QUOTED_NAMES = [
  "CreateProjectRequest.name",
  "UpdateProjectRequest.name",
  "CreateProjectFromEnvironmentRequest.name",
  "ProjectMetadata.name",
];
const NAME_LENGTH =
  "cel.name_length=size(this) >= 1 && size(this) <= 80 -> name must be between 1 and 80 characters";
/** Takes every remote that a project can store, of which the short form is no URI: uri_or_remote replaces it. */
const WIDENED = new Map([["ListProjectsRequest.Filter.spec_remote_uris", "repeated.items.string.uri=true"]]);
/** Rules of which the second page has the message alone. */
const MESSAGE_ALONE =
  /^(cel\.(?:absolute_path|relative_path|disconnected_timeout)=)((?:value must be|path must not)(?!.* -> ).*)$/;
const EMPTY_OR_UUID =
  "string.pattern=^$|^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$";

const messages = page.types.filter((each) => each.kind === "message");
const enums = page.types.filter((each) => each.kind === "enum");

describe("the wire reference and the contract", () => {
  test("every specified operation and type is in the contract", () => {
    const specified = [...page.operations, ...page.types].filter((each) => each.specified);
    expect(specified.length).toBeGreaterThan(100);
    const missing = specified.filter(({ name }) => !types.has(name) && !operations.has(name));
    expect(missing.map(({ name }) => name)).toEqual([]);
  });

  test("every operation of the contract but our own is on the page, with the same messages", () => {
    const onPage = new Map(page.operations.map((each) => [each.name, each]));
    for (const [name, { input, output }] of operations) {
      if (OWN_OPERATIONS.includes(name)) continue;
      expect(onPage.get(name)).toMatchObject({ name, input, output });
    }
  });

  test("the contract has no types of its own but those of errors and of our own operations", () => {
    const onPage = new Set(page.types.map(({ name }) => name));
    const own = [...types.keys()].filter((name) => !onPage.has(name));
    expect(own.toSorted()).toEqual(OWN_TYPES);
  });

  test("every type is in the file that its heading names, requests and responses with their service", () => {
    const carried = new Set([...operations.values()].flatMap(({ input, output }) => [input, output]));
    const misplaced = page.types.filter(({ name, resource }) => {
      const suffix = carried.has(name.replace(/\..*/, "")) ? "_service" : "";
      const place = types.get(name)?.file.name;
      return place !== undefined && place !== `service/v1/${resource}${suffix}`;
    });
    expect(misplaced.map(({ name }) => name)).toEqual([]);
  });

  test.each(enums.filter(({ name }) => types.has(name)))("$name has the members of the page", (each) => {
    const ours = types.get(each.name) as DescEnum;
    const onPage = new Set(each.values.map(({ number }) => number));
    const own = ours.values.filter(({ number }) => number >= 1000 && !onPage.has(number));
    const specified = ours.values.filter((value) => !own.includes(value));
    expect(specified.map(({ number, name, deprecated }) => ({ number, name, deprecated }))).toEqual(
      each.values,
    );
    const reserved = ours.proto.reservedRange.flatMap(({ start, end }) =>
      Array.from({ length: end - start + 1 }, (_, index) => start + index),
    );
    expect(each.reserved.filter((number) => !reserved.includes(number))).toEqual([]);
  });

  describe.each(messages.filter(({ name }) => types.has(name)))("$name", (message) => {
    const ours = types.get(message.name) as DescMessage;
    const numbers = new Set(message.fields.map(({ number }) => number));

    test("has every field of the page, or reserves its number where it may", () => {
      const missing = message.fields.filter(
        ({ number }) => !ours.fields.some((each) => each.number === number),
      );
      expect(missing.filter(({ number }) => message.specified || !isReserved(ours, number))).toEqual([]);
    });

    test("has fields of its own from 1000 on only, and reserves what the page reserves", () => {
      const own = ours.fields.filter(({ number }) => !numbers.has(number));
      expect(own.filter(({ number }) => number < 1000).map(String)).toEqual([]);
      expect(message.reserved.filter((number) => !isReserved(ours, number))).toEqual([]);
    });

    test("has the rules of the page over several fields", () => {
      const ofOneofs = ours.oneofs.filter((each) => getOption(each, oneofRules).required);
      expect(ofOneofs.map(({ name }) => name)).toEqual(message.requiredOneofs);
      const cel = atoms(toJson(MessageRulesSchema, getOption(ours, messageRules)) as JsonObject, "");
      expect(cel).toHaveLength(message.rules.length);
      // The page gives one of them in words, not in CEL: of that the id alone is held against it.
      const theirs = message.rules.map((rule) => (rule.includes(" -> ") ? rule : rule.replace(/=.*/, "=")));
      expect(theirs.filter((rule) => !cel.some((each) => each.startsWith(rule)))).toEqual([]);
    });

    const shared = message.fields.flatMap((theirs) => {
      const mine = ours.fields.find(({ number }) => number === theirs.number);
      return mine ? [[theirs.name, theirs, mine] as const] : [];
    });
    if (shared.length > 0) {
      test.each(shared)("%s is what the page says", (_, theirs, mine) => {
        const { name, number, type, optional, oneof, deprecated } = theirs;
        expect(shape(mine)).toEqual({ name, number, type, optional, oneof, deprecated });
        const rules = atoms(
          toJson(FieldRulesSchema, rulesOf(mine) ?? create(FieldRulesSchema)) as JsonObject,
          "",
        );
        const isCarried = (rule: string) => {
          const [, id, text] = MESSAGE_ALONE.exec(rule) ?? [];
          if (id === undefined) return rules.includes(rule);
          return rules.some((each) => each.startsWith(id) && each.endsWith(` -> ${text}`));
        };
        expect(expectedRules(message, theirs, mine).filter((rule) => !isCarried(rule))).toEqual([]);
        // Bounds of our own are added; a demand for presence would refuse what the page allows.
        expect(rules.includes("required")).toBe(theirs.rules.includes("required"));
      });
    }
  });
});

const handedOver = join(ROOT, "../shared/contract");
describe("the copies of the wire reference", () => {
  const each = existsSync(handedOver) ? test : test.skip; // Nothing to compare with where ../shared is not next to this clone.
  each.each(NAMES)(
    "%s is what was handed over (skipped where ../shared is not next to this clone)",
    (name) => {
      const copy = readFileSync(join(import.meta.dirname, name), "utf8");
      expect(copy).toBe(readFileSync(join(handedOver, name), "utf8"));
    },
  );
});

function short(typeName: string): string {
  return typeName.replace(PACKAGE, "");
}

function isReserved({ proto }: DescMessage, number: number): boolean {
  return proto.reservedRange.some(({ start, end }) => start <= number && number < end);
}

/** A field in the page's words. */
function shape(field: DescField) {
  return {
    name: field.name,
    number: field.number,
    type: typeText(field),
    optional: field.proto.proto3Optional,
    oneof: field.oneof?.name,
    deprecated: field.deprecated,
  };
}

function typeText(field: DescField): string {
  const type = field.message ?? field.enum;
  const element = type ? short(type.typeName) : scalarText(field.scalar);
  if (field.fieldKind === "list") return `repeated ${element}`;
  if (field.fieldKind === "map") return `map<${scalarText(field.mapKey)}, ${element}>`;
  return element;
}

function scalarText(scalar: ScalarType | undefined): string {
  return scalar === undefined ? "" : (ScalarType[scalar]?.toLowerCase() ?? "");
}

/** The page's rules in the form that the contract must give them. */
function expectedRules(message: WireMessage, field: WireField, mine: DescField): string[] {
  const isQuoted = QUOTED_NAMES.includes(`${message.name}.${field.name}`);
  const rules = field.rules.filter((rule) => !isQuoted || !rule.startsWith("string."));
  if (isQuoted) rules.push(NAME_LENGTH);
  const widened = WIDENED.get(`${message.name}.${field.name}`);
  // Said of an answer, or of a message, which is absent when it is not set.
  const loose = new Set(["always answered, may be empty", ...(mine.message ? ["only when set"] : [])]);
  return rules.flatMap((rule) => {
    if (loose.has(rule) || rule === widened) return [];
    const whenSet = field.rules.includes("only when set");
    // Where presence is tracked, an empty text counts as set: the pattern has to let it through.
    if (rule === "only when set") return mine.proto.proto3Optional ? [] : ["ignore=IGNORE_IF_ZERO_VALUE"];
    if (rule === "string.uuid=true" && whenSet && mine.proto.proto3Optional) return [EMPTY_OR_UUID];
    return [rule];
  });
}

/** Rules in their JSON form, taken apart as the page's are. */
function atoms(rules: JsonObject, path: string): string[] {
  return Object.entries(rules).flatMap(([name, value]) => {
    if (name === "cel" && path === "") {
      return (value as JsonObject[]).map(
        ({ id, expression, message }) => `cel.${id}=${expression} -> ${message}`,
      );
    }
    return isObject(value) ? atoms(value, `${path}${name}.`) : [`${path}${name}=${value}`].map(plain);
  });
}

/** `required=true` is written `required` on the page. */
function plain(atom: string): string {
  return atom.replace(/^required=true$/, "required");
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

import { create } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import { v4, v7 } from "uuid";
import {
  EnvironmentQuestion_RefreshChangesSchema,
  EnvironmentQuestionSchema,
} from "#gen/runner/v1/environment_question_pb.js";
import { AgentForm, WorkKind } from "#gen/runner/v1/work_pb.js";
import {
  ApprovalOptionSchema,
  ApprovalToolCallSchema,
  ApprovalOption_Kind as OptionKind,
  ToolKind,
} from "#gen/service/v1/approval_pb.js";
import { EnvironmentInitializerSchema } from "#gen/service/v1/environment_pb.js";
import { ResourceOperation, ResourceType } from "#gen/service/v1/event_pb.js";
import {
  EventDeliverySchema,
  EventDeliveryState,
  EventDeliveryVerdict,
} from "#gen/service/v1/event_subscription_pb.js";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { approvalContent } from "../../src/domain/approval/approval.ts";
import { stepsOf } from "../../src/domain/workflow/execution/workflow-action.ts";
import { workflowError } from "../../src/domain/workflow/execution/workflow-error.ts";
import {
  newFollowedPullRequest,
  placeOfPullRequest,
} from "../../src/domain/workflow/pull-request/followed-pull-request.ts";
import { createSignInLinkAsOperator } from "../../src/services/access/organization-creation.ts";
import { registerAgent } from "../../src/services/agent/agent-registry.ts";
import { askApproval } from "../../src/services/approval/approval-asking.ts";
import { createSignIn } from "../../src/services/identity/sign-in.ts";
import type { ActionOfExecution } from "../../src/services/workflow/action/action-progress.ts";
import {
  advanceSteps,
  beginAction,
  findActionOfExecution,
  finishAction,
} from "../../src/services/workflow/action/action-progress.ts";
import { insertDeliveries } from "../../src/store/access/event-subscription/event-delivery.ts";
import { findAgents } from "../../src/store/agent/agent.ts";
import { insertQuestion } from "../../src/store/environment/environment-question.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import { stopWork } from "../../src/store/runner/work.ts";
import { OPERATOR, type Scope, type WriteTransaction, within } from "../../src/store/store.ts";
import { insertPullRequest } from "../../src/store/workflow/pull-request/pull-request.ts";
import { appendLog } from "../../src/store/workflow/step-log.ts";
import { findAction } from "../../src/store/workflow/workflow-action.ts";
import { type Answer, post, repository } from "../harness/call.ts";
import { addMember, withServerData } from "../harness/member.ts";
import type { ReachableServer } from "../harness/server.ts";
import {
  agentAtWork,
  changesOf,
  connectionsOf,
  environmentAtWork,
  INSTANCE,
  reviewsOf,
  sayTwoThings,
  stepAtWork,
} from "./world-work.ts";

/** An id of one resource of every kind that requests name, all of one organization. */
export interface World {
  readonly account: string;
  /** Work that `runner` holds: an action, whose first step `stepAgentExecution` carries out. */
  readonly actionLease: string;
  /** One of two agents of the organization. */
  readonly agent: string;
  /** One of two agents of the organization that administrators defined. */
  readonly definedAgent: string;
  /** A run of `agent` that waits for `environment`; two messages are in its queue. */
  readonly agentExecution: string;
  /** Work that `runner` holds: another run of `agent`. */
  readonly agentLease: string;
  /** One of two approvals that `agentExecution` waits for. */
  readonly approval: string;
  /** The run of that work, with two blocks of output. */
  readonly heldAgentExecution: string;
  /** The environment of that work, of which `runner` has reported what has changed. */
  readonly heldEnvironment: string;
  /** A run that has stopped. */
  readonly endedAgentExecution: string;
  /** An entry of the audit trail, about `project`. */
  readonly auditLogEntry: string;
  readonly environment: string;
  readonly environmentClass: string;
  /** An entry of the ledger of `eventSubscription`, which failed. */
  readonly eventDelivery: string;
  /** One of two event subscriptions, which are paused. */
  readonly eventSubscription: string;
  /** One of two groups. */
  readonly group: string;
  /** One of two memberships of `group`. */
  readonly groupMembership: string;
  readonly roleAssignment: string;
  readonly hostToken: string;
  readonly integration: string;
  /** Work that `runner` holds: an environment to bring up, from a repository at a host that it has a credential for. */
  readonly lease: string;
  /** A user that is no administrator; `account` is its account. */
  readonly member: string;
  /** What accounts join the organization with; a secret, and so good for anyone who has it. */
  readonly invite: string;
  readonly organization: string;
  /** One of two prebuilds of `prebuiltProject`, which waits for `runner`. */
  readonly prebuild: string;
  /** A project that gets prebuilds of `environmentClass`, where none waits. */
  readonly prebuiltProject: string;
  readonly project: string;
  /** A question about `heldEnvironment` that `runner` has not answered. */
  readonly question: string;
  /** A draft of a review of `heldAgentExecution`, by the caller. */
  readonly reviewDraft: string;
  readonly runner: string;
  readonly secret: string;
  readonly securityPolicy: string;
  readonly serviceAccount: string;
  readonly serviceAccountToken: string;
  readonly serviceAccountTrust: string;
  readonly session: string;
  /** One of two sessions of `user`, who is signed in. */
  readonly signInSession: string;
  readonly stepAgentExecution: string;
  readonly token: string;
  readonly triggerEvent: string;
  readonly user: string;
  readonly webhook: string;
  readonly workflow: string;
  /** Not an id: the token of `runner`, and one that it may exchange for another. */
  readonly runnerToken: string;
  /** A token of `member`. */
  readonly memberToken: string;
  readonly exchangeToken: string;
  /** An action of `workflowExecution` that failed. */
  readonly workflowAction: string;
  /** An execution of `workflow` that has ended. */
  readonly workflowExecution: string;
}

export type ResourceKind = Exclude<keyof World, "runnerToken" | "exchangeToken" | "memberToken">;

/** Ids of nothing, of every kind. */
export function nowhere(): World {
  return {
    account: v7(),
    actionLease: v7(),
    agent: v7(),
    definedAgent: v7(),
    agentExecution: v7(),
    agentLease: v7(),
    approval: v7(),
    endedAgentExecution: v7(),
    auditLogEntry: v7(),
    environment: v7(),
    heldAgentExecution: v7(),
    heldEnvironment: v7(),
    environmentClass: v7(),
    eventDelivery: v7(),
    eventSubscription: v7(),
    hostToken: v7(),
    integration: v7(),
    invite: v4(),
    lease: v7(),
    member: v7(),
    organization: v7(),
    prebuild: v7(),
    prebuiltProject: v7(),
    project: v7(),
    question: v7(),
    reviewDraft: v7(),
    runner: v7(),
    secret: v7(),
    securityPolicy: v7(),
    serviceAccount: v7(),
    serviceAccountToken: v7(),
    serviceAccountTrust: v7(),
    group: v7(),
    groupMembership: v7(),
    roleAssignment: v7(),
    session: v7(),
    signInSession: v7(),
    stepAgentExecution: v7(),
    token: v7(),
    triggerEvent: v7(),
    user: v7(),
    webhook: v7(),
    workflow: v7(),
    workflowAction: v7(),
    workflowExecution: v7(),
    runnerToken: "",
    memberToken: "",
    exchangeToken: "",
  };
}

/** How many worlds each organization has; the names of its secrets differ. */
const worldsOf = new Map<string, number>();

/**
 * Fills the organization of a token with two projects, two environments of one
 * session, a runner with two classes, two credentials and the lease of a third environment, a second member, two secrets, two service accounts, two
 * tokens of each kind, two workflows, of which one ran twice, two prebuilds, and two agents, each with a run. What no operation makes yet has an id of nothing.
 */
export async function makeWorld(server: Pick<ReachableServer, "url" | "token" | "dataDir">): Promise<World> {
  const call = async (operation: string, body: unknown, token = server.token): Promise<Answer["body"]> => {
    const answer = await post(server, operation, body, token);
    if (answer.status !== 200) throw new Error(`${operation}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const identity = await call("IdentityService/GetAuthenticatedIdentity", {});
  const { runner, exchangeToken } = await call("RunnerService/CreateRunner", { name: "In the attic" });
  const classes: string[] = [];
  for (const displayName of ["Small", "Medium"]) {
    const environmentClass = { runnerId: runner.runnerId, displayName, description: "a machine" };
    classes.push((await call("RunnerConfigurationService/CreateEnvironmentClass", environmentClass)).id);
  }
  const environmentClass = classes[0] ?? "";
  const hostTokens: string[] = [];
  for (const host of ["one.example.org", "two.example.org"]) {
    const request = { runnerId: runner.runnerId, host, token: "a credential" };
    const made = await call("RunnerConfigurationService/CreateHostAuthenticationToken", request);
    hostTokens.push(made.token.id);
  }
  const introduction = { version: "1.2.2", systemDetails: "a machine in the attic", apiAgents: true };
  const registered = await call("WorkService/Register", introduction, exchangeToken);
  await call("EnvironmentService/CreateEnvironment", {
    name: "Leased",
    spec: {
      content: { initializer: repository("https://one.example.org/team/leased.git") },
      machine: { class: environmentClass },
    },
  });
  const { works } = await call("WorkService/LeaseWork", { maxLeases: 1, wait: "0s" }, registered.token);
  const machine = { class: environmentClass };
  const environmentId = await environmentAtWork(call, registered.token, { machine });
  const agents = await addAgents(server, identity.organizationId);
  const agentId = agents[0] ?? "";
  const definedAgent = await defineAgents(call);
  const held = await agentAtWork(call, registered.token, { agentId, environmentId });
  await call("EnvironmentWorkService/ReportEnvironmentChanges", changesOf(environmentId), registered.token);
  const connections = connectionsOf(environmentId);
  await call("EnvironmentWorkService/ReportEnvironmentConnections", connections, registered.token);
  const reviewDraft = await reviewsOf(call, held.heldAgentExecution, environmentId);
  const { runnerId } = runner;
  await call("WorkService/BeginInstance", { instanceId: INSTANCE }, registered.token);
  const question = await askRefresh(server, identity, { runnerId, environmentId });
  const session = v7();
  const environments: string[] = [];
  for (const name of ["First", "Second"]) {
    const initializer = repository("https://git.example.org/team/lonely.git");
    const spec = { content: { initializer }, machine: { class: environmentClass } };
    const made = await call("EnvironmentService/CreateEnvironment", { name, sessionId: session, spec });
    environments.push(made.environment.id);
  }
  const projects: string[] = [];
  for (const name of ["Alpha", "Beta"]) {
    const initializer = repository(`https://git.example.org/team/${name}.git`);
    projects.push((await call("ProjectService/CreateProject", { name, initializer })).project.id);
  }
  const project = projects[0] ?? "";
  await call("ProjectService/UpdateProjectEnvironmentClasses", {
    projectId: project,
    projectEnvironmentClasses: classes.map((environmentClassId, order) => ({ environmentClassId, order })),
  });
  await call("EnvironmentService/CreateEnvironmentFromProject", { projectId: project });
  await call("UserService/CreatePersonalAccessToken", { description: "to be deleted" });
  const { personalAccessTokens } = await call("UserService/ListPersonalAccessTokens", {});
  const member = await addMember(server, {
    organizationId: identity.organizationId,
    email: `${v7()}@example.org`,
  });
  const { invite } = await call("OrganizationService/CreateOrganizationInvite", {
    organizationId: identity.organizationId,
  });
  const securityPolicies: string[] = [];
  for (const name of ["No tunnels", "No compilers"]) {
    const organizationId = identity.organizationId;
    const made = await call("SecurityService/CreateSecurityPolicy", {
      organizationId,
      metadata: { name },
      spec: {},
    });
    securityPolicies.push(made.securityPolicy.id);
  }
  const secrets: string[] = [];
  const worlds = (worldsOf.get(identity.organizationId) ?? 0) + 1;
  worldsOf.set(identity.organizationId, worlds);
  const secretName = worlds === 1 ? "REGISTRY_TOKEN" : `REGISTRY_TOKEN_${worlds}`;
  for (const scope of [{ projectId: project }, { organizationId: identity.organizationId }]) {
    const request = { name: secretName, value: "a secret value", environmentVariable: true, scope };
    secrets.push((await call("SecretService/CreateSecret", request)).secret.id);
  }
  const validUntil = "2999-12-31T00:00:00Z";
  const serviceAccounts: string[] = [];
  for (const name of ["Nightly", "Weekly"]) {
    const made = await call("ServiceAccountService/CreateServiceAccount", { name, validUntil });
    serviceAccounts.push(made.serviceAccount.id);
  }
  const serviceAccount = serviceAccounts[0] ?? "";
  const groups: string[] = [];
  for (const name of ["Night watch", "Week watch"]) {
    const organizationId = identity.organizationId;
    const request = { organizationId, name: worlds === 1 ? name : `${name} ${worlds}` };
    groups.push((await call("GroupService/CreateGroup", request)).group.id);
  }
  const groupMemberships: string[] = [];
  for (const subject of [
    { id: serviceAccount, principal: "PRINCIPAL_SERVICE_ACCOUNT" },
    { id: identity.subject.id, principal: "PRINCIPAL_USER" },
  ]) {
    const made = await call("GroupService/CreateMembership", { groupId: groups[0], subject });
    groupMemberships.push(made.member.id);
  }
  const serviceAccountTokens: string[] = [];
  for (const description of ["for the report", "for the mail"]) {
    const request = { serviceAccountId: serviceAccount, description };
    const made = await call("ServiceAccountService/CreateServiceAccountToken", request);
    serviceAccountTokens.push(made.serviceAccountToken.id);
  }
  const serviceAccountTrusts: string[] = [];
  for (const ref of ["main", "next"]) {
    const made = await call("ServiceAccountService/CreateServiceAccountTrust", {
      ...{ serviceAccountId: serviceAccount, issuer: "https://ci.example.org", audience: "chartroom" },
      conditions: [{ claim: "ref", value: `refs/heads/${ref}` }],
    });
    serviceAccountTrusts.push(made.serviceAccountTrust.id);
  }
  const workflows: string[] = [];
  for (const name of ["Nightly", "Weekly"]) {
    workflows.push(
      (await call("WorkflowService/CreateWorkflow", { name, ...workflowOver(projects) })).workflow.id,
    );
  }
  const workflowId = workflows[0] ?? "";
  const roleAssignments: string[] = [];
  for (const groupId of groups) {
    const request = { groupId, resourceType: "RESOURCE_TYPE_WORKFLOW", resourceId: workflowId };
    const made = await call("GroupService/CreateRoleAssignment", { ...request, role: "RESOURCE_ROLE_USE" });
    roleAssignments.push(made.roleAssignment.id);
  }
  await call("WorkflowService/UpdateWorkflow", { workflowId, agentId });
  const step = await stepAtWork(call, registered.token, workflowId);
  await call("WorkflowService/UpdateWorkflow", { workflowId, agentId: "" });
  const executions: string[] = [];
  for (const _ of ["first", "second"]) {
    const made = await call("WorkflowService/StartWorkflow", { workflowId: workflows[0] });
    executions.push(made.workflowExecution.id);
  }
  const workflowExecution = executions[0] ?? "";
  const { workflowExecutionActions: actions } = await call("WorkflowService/ListWorkflowExecutionActions", {
    filter: { workflowExecutionIds: [workflowExecution] },
  });
  await endActions(
    server,
    identity.organizationId,
    actions.map(({ id }: { id: string }) => id),
  );
  const { triggerEvents } = await call("WorkflowService/ListWorkflowTriggerEvents", {});
  const runs: string[] = [];
  for (const each of agents) {
    const codeContext = { environmentId: environments[0] };
    const asked = { agentId: each, name: "Fix the build", codeContext };
    runs.push((await call("AgentService/StartAgent", asked)).agentExecutionId);
  }
  await sayTwoThings(call, runs[0] ?? "");
  await call("AgentService/StopAgentExecution", { agentExecutionId: runs[1] });
  const { entries } = await call("EventService/ListAuditLogs", {
    filter: { subjectIds: [project] },
    sort: { order: "SORT_ORDER_ASC" },
  });
  return {
    ...nowhere(),
    ...step,
    agent: agentId,
    definedAgent,
    ...held,
    heldEnvironment: environmentId,
    reviewDraft,
    agentExecution: runs[0] ?? "",
    approval: await askTwice(server, identity, runs[0] ?? ""),
    endedAgentExecution: runs[1] ?? "",
    triggerEvent: triggerEvents[0].id,
    workflow: workflows[0] ?? "",
    workflowExecution,
    workflowAction: actions.at(-1).id,
    account: member.accountId,
    member: member.userId,
    serviceAccount,
    serviceAccountToken: serviceAccountTokens[0] ?? "",
    serviceAccountTrust: serviceAccountTrusts[0] ?? "",
    group: groups[0] ?? "",
    groupMembership: groupMemberships[0] ?? "",
    roleAssignment: roleAssignments[0] ?? "",
    organization: identity.organizationId,
    user: identity.subject.id,
    runner: runner.runnerId,
    environmentClass,
    hostToken: hostTokens[0] ?? "",
    auditLogEntry: entries[0].id,
    ...(await subscribeTwice(server, call, identity.organizationId)),
    environment: environments[0] ?? "",
    secret: secrets[0] ?? "",
    securityPolicy: securityPolicies[0] ?? "",
    session,
    ...(await prebuildTwice(call, projects[1] ?? "", classes)),
    signInSession: await signInTwice(server, call, identity.subject.id),
    project,
    token: personalAccessTokens.at(-1).id,
    lease: works[0].leaseId,
    question,
    runnerToken: registered.token,
    memberToken: member.token,
    invite: invite.inviteId,
    exchangeToken: (await call("RunnerService/CreateRunnerToken", { runnerId })).exchangeToken,
  };
}

/** Signs a user in with two links of the operator, in the data of the server; the id of the first session. */
async function signInTwice(
  server: Pick<ReachableServer, "dataDir">,
  call: (operation: string, body: unknown) => Promise<Answer["body"]>,
  userId: string,
): Promise<string> {
  await withServerData(server, async (store, keys) => {
    const signIn = createSignIn({ store, keys, now: Date.now });
    for (const _ of ["at work", "at home"]) {
      await signIn.begin(await createSignInLinkAsOperator(store, keys, userId, "test"), undefined, false);
    }
  });
  return (await call("UserService/ListSessions", {})).sessions[0].id;
}

/** Has prebuilds of both classes made of a project; the one of the first is cancelled, the other waits. */
async function prebuildTwice(
  call: (operation: string, body: unknown) => Promise<Answer["body"]>,
  projectId: string,
  environmentClassIds: readonly string[],
): Promise<Pick<World, "prebuild" | "prebuiltProject">> {
  await call("ProjectService/UpdateProject", { projectId, prebuildConfiguration: { environmentClassIds } });
  const ids: string[] = [];
  for (const environmentClassId of environmentClassIds) {
    const asked = { projectId, environmentClassId, spec: {} };
    ids.push((await call("PrebuildService/CreatePrebuild", asked)).prebuild.id);
  }
  await call("PrebuildService/CancelPrebuild", { prebuildId: ids[0] });
  return { prebuild: ids[1] ?? "", prebuiltProject: projectId };
}

/** Makes two event subscriptions, which are paused, the first with two events that its target has not taken. */
async function subscribeTwice(
  server: Pick<ReachableServer, "dataDir">,
  call: (operation: string, body: unknown) => Promise<Answer["body"]>,
  organizationId: string,
): Promise<Pick<World, "eventSubscription" | "eventDelivery">> {
  const ids: string[] = [];
  for (const name of ["Chat", "Program"]) {
    const { eventSubscription } = await call("EventSubscriptionService/CreateEventSubscription", {
      name,
      url: "https://hooks.example.org/services/T0/canary",
      // None happens here.
      eventKinds: ["pull_request.deleted"],
    });
    ids.push(eventSubscription.id);
    const paused = { eventSubscriptionId: eventSubscription.id, paused: true };
    await call("EventSubscriptionService/UpdateEventSubscription", paused);
  }
  const [eventSubscription = ""] = ids;
  const deliveries = [1n, 2n].map((sequence) =>
    create(EventDeliverySchema, {
      id: v7(),
      eventSubscriptionId: eventSubscription,
      eventKind: "pull_request.deleted",
      resourceType: ResourceType.PULL_REQUEST,
      resourceId: v7(),
      operation: ResourceOperation.DELETE,
      sequence,
      happenedAt: timestampNow(),
      state: EventDeliveryState.FAILED,
      attempts: [
        {
          at: timestampNow(),
          verdict: EventDeliveryVerdict.REFUSED,
          statusCode: 500,
          detail: "answered 500",
          durationMs: 12,
        },
      ],
    }),
  );
  const scope = { organizationId };
  await withServerData(server, (store) =>
    store.write(OPERATOR, "test", (tx) => insertDeliveries(tx, scope, deliveries), within(scope)),
  );
  return { eventSubscription, eventDelivery: deliveries[0]?.id ?? "" };
}

/** Defines two agents, unless the organization has them; the id of the first. */
async function defineAgents(
  call: (operation: string, body: unknown) => Promise<Answer["body"]>,
): Promise<string> {
  const { agents } = await call("AgentService/ListAgents", {});
  const ids: string[] = [];
  for (const name of ["Planner", "Writer"]) {
    const known = agents.find((each: { name: string }) => each.name === name);
    const definition = { kind: "AGENT_KIND_TEXT", command: "cat", variables: { TONE: "calm" } };
    const made = known ?? (await call("AgentService/CreateAgent", { name, definition })).agent;
    ids.push(made.id);
  }
  return ids[0] ?? "";
}

/** Registers two agents as the operator would, unless the organization has them; their ids. */
function addAgents(server: Pick<ReachableServer, "dataDir">, organizationId: string): Promise<string[]> {
  return withServerData(server, async (store) => {
    const known = (await findAgents(store.reader)).filter((each) => each.organizationId === organizationId);
    const ids: string[] = [];
    for (const name of ["Coder", "Reviewer"]) {
      const there = known.find(({ agent }) => agent.name === name);
      if (there) {
        ids.push(there.agent.id);
        continue;
      }
      const registration = { organizationId, name, description: `the ${name}`, command: "cat" };
      const kind = { form: AgentForm.TEXT, takesSettings: name === "Coder", isDefault: false };
      ids.push(await registerAgent(store, { ...registration, ...kind }));
    }
    return ids;
  });
}

/** A workflow that reports a number of each project and then runs a command. */
function workflowOver(projectIds: readonly string[]): object {
  const score = { title: "Score", key: "score", command: "cat score", integer: {} };
  return {
    triggers: [{ manual: {}, context: { projects: { projectIds } } }],
    action: {
      limits: { maxParallel: 2, maxTotal: 10 },
      steps: [{ report: { outputs: [score] } }, { task: { command: "make lint" } }],
    },
  };
}

/** What the approvals of the world ask for. */
export const ASKED = approvalContent({
  case: "toolCall",
  value: create(ApprovalToolCallSchema, {
    title: "Run the tests",
    kind: ToolKind.EXECUTE,
    tool: "shell",
    input: '{"command":"make test"}',
  }),
});

/** Asks for two approvals, as a run would; the id of the first. */
function askTwice(
  server: Pick<ReachableServer, "dataDir">,
  { organizationId, subject }: Answer["body"],
  agentExecutionId: string,
): Promise<string> {
  const creator = create(SubjectSchema, { id: subject.id, principal: Principal.USER });
  const options = [
    create(ApprovalOptionSchema, { id: "yes", name: "Run them", kind: OptionKind.ALLOW_ONCE }),
    create(ApprovalOptionSchema, { id: "no", name: "Do not", kind: OptionKind.REJECT_ONCE }),
  ];
  return withServerData(server, (store) =>
    store.write(OPERATOR, "test", async (tx) => {
      const ids: string[] = [];
      for (const toolCallId of ["call-1", "call-2"]) {
        const asker = { agentExecutionId, toolCallId, workflowExecutionId: "", workflowActionId: "" };
        const policyFieldPath = "agentPolicy.approvals";
        const ask = { asked: ASKED, asker, creator, options, policyFieldPath, isShared: false };
        ids.push((await askApproval(tx, { organizationId }, ask)).id);
      }
      return ids[0] ?? "";
    }),
  );
}

/** Asks a runner to look at an environment, for longer than a test takes; the id of the question. */
function askRefresh(
  server: Pick<ReachableServer, "dataDir">,
  { organizationId, subject }: Answer["body"],
  { runnerId, environmentId }: { readonly runnerId: string; readonly environmentId: string },
): Promise<string> {
  return withServerData(server, (store) =>
    store.write(OPERATOR, "test", async (tx) => {
      const id = tx.newId();
      const asked = {
        case: "refreshChanges",
        value: create(EnvironmentQuestion_RefreshChangesSchema),
      } as const;
      const question = create(EnvironmentQuestionSchema, { id, environmentId, question: asked });
      const endsAt = tx.now + 3_600_000;
      await insertQuestion(tx, { organizationId }, question, { runnerId, askerId: subject.id, endsAt });
      return id;
    }),
  );
}

/** Ends actions as runners would have: each reports an output, and the command of the last one fails. */
function endActions(
  server: Pick<ReachableServer, "dataDir">,
  organizationId: string,
  ids: readonly string[],
) {
  return withServerData(server, (store) =>
    store.write(OPERATOR, "test", async (tx) => {
      const scope = { organizationId };
      for (const id of ids) {
        await stopWork(tx, scope, WorkKind.ACTION, id);
        const action = await findAction(tx.db, scope, id);
        const executionId = action?.metadata?.workflowExecutionId ?? "";
        const found = await findActionOfExecution(tx, scope, id, executionId);
        if (!action || !found) throw new Error(`there is no action ${id}`);
        await beginAction(tx, scope, found, { environmentId: v7(), attempt: 1 });
        const printed = new TextEncoder().encode("2 problems found\n");
        await appendLog(tx, { actionId: action.id, attempt: 1, stepIndex: 1 }, { offset: 0, data: printed });
        const outputs = { score: new TextEncoder().encode("7") };
        const reported = [
          { stepIndex: 0, state: "running" } as const,
          { stepIndex: 0, state: "done", outputs } as const,
          { stepIndex: 1, state: "running" } as const,
        ];
        const error = workflowError("step_failed", "the command ended with status 2");
        const ended = id === ids.at(-1) ? ({ kind: "failed", error } as const) : ({ kind: "done" } as const);
        const last = { stepIndex: 1, state: ended.kind, ...(ended.kind === "failed" && { error }) };
        const before = await findAction(tx.db, scope, id);
        const steps = stepsOf(found.execution, action);
        if (before) await advanceSteps(tx, scope, { before, steps }, [...reported, last]);
        await insertUnfollowedPullRequest(tx, scope, found);
        await finishAction(tx, scope, await findAction(tx.db, scope, id), ended, []);
      }
    }),
  );
}

/** Adds a pull request of an action that nobody asks a host for, so that it stays as it is. */
async function insertUnfollowedPullRequest(
  tx: WriteTransaction,
  scope: Scope,
  { action, execution }: ActionOfExecution,
): Promise<void> {
  const url = "https://git.example.org/team/ship/pull/7";
  const initializer = create(EnvironmentInitializerSchema, {
    specs: [{ spec: { case: "git", value: { remoteUri: "https://git.example.org/team/ship.git" } } }],
  });
  const place = placeOfPullRequest(initializer, url);
  if (!place) throw new Error("the pull request has no place");
  const opened = { id: tx.newId(), action, stepIndex: 0, step: undefined, url, place, now: tx.now };
  const pullRequest = newFollowedPullRequest(opened);
  const workflowId = execution.metadata?.workflowId ?? "";
  await insertPullRequest(tx, scope, pullRequest, { workflowId, place, sourceSetBy: [] });
  await builderOf(tx.db)
    .updateTable("pull_request")
    .set({ next_poll_at: null })
    .where("id", "=", pullRequest.id)
    .execute();
}

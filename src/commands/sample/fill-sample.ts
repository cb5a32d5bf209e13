import type { MessageInitShape } from "@bufbuild/protobuf";
import { type CallOptions, type Client, createClient, type Transport } from "@connectrpc/connect";
import { AgentForm } from "#gen/runner/v1/work_pb.js";
import { AgentExecution_Phase as Phase, AgentInputReceipt as Receipt } from "#gen/service/v1/agent_pb.js";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { EnvironmentPush_State as PushState } from "#gen/service/v1/environment_push_pb.js";
import { EnvironmentService } from "#gen/service/v1/environment_service_pb.js";
import { ResourceType } from "#gen/service/v1/event_pb.js";
import { EventService } from "#gen/service/v1/event_service_pb.js";
import { AgentApprovalPolicy_Effect as Effect, OrganizationRole } from "#gen/service/v1/organization_pb.js";
import { OrganizationService } from "#gen/service/v1/organization_service_pb.js";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import type { WorkflowStepSchema } from "#gen/service/v1/workflow_pb.js";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import type { Keys } from "../../keys.ts";
import { joinOrganization } from "../../services/access/membership.ts";
import { findOrCreateAccount } from "../../services/access/organization-creation.ts";
import { registerAgent } from "../../services/agent/agent-registry.ts";
import { createPersonalToken } from "../../services/identity/personal-token.ts";
import { OPERATOR, type Store } from "../../store/store.ts";
import { SAMPLE_AGENT, type SampleRepositories } from "./sample-data.ts";

/** What filling the sample needs. */
export interface SampleContext {
  readonly store: Store;
  readonly keys: Keys;
  /** Calls the server in this process. */
  readonly transport: Transport;
  readonly organizationId: string;
  /** The administrator's access token. */
  readonly token: string;
  readonly repositories: SampleRepositories;
  readonly signal: AbortSignal;
}

type Step = MessageInitShape<typeof WorkflowStepSchema>;

/** Makes one call as the owner of a token. */
const as = (token: string, signal: AbortSignal): CallOptions => ({
  headers: { authorization: `Bearer ${token}` },
  signal,
});

const said = (text: string) => ({
  inputs: [{ input: { case: "text", value: { content: text } } } as const],
});

/** How long an approval can be decided, in milliseconds. */
const APPROVAL_MS = 24 * 3_600_000;

/** A loop that runs for a quarter of an hour and prints a line each second. */
const CLOCK = 'i=0; while [ "$i" -lt 900 ]; do i=$((i + 1)); echo "second $i"; sleep 1; done';

/**
 * Fills an organization through the same operations as every client: two projects, runs of the scripted agent, one of
 * which asks for something, a completed workflow run, an execution in progress, and a push that waits for an
 * approval.
 *
 * @returns a function that executes the push once it is approved, and fails when it is denied
 */
export async function fillSample(context: SampleContext): Promise<() => Promise<void>> {
  const { store, transport, organizationId, token, repositories, signal } = context;
  const call = as(token, signal);
  await registerAgent(store, {
    organizationId,
    name: "scripted",
    description:
      "Follows instructions word by word: echo hello, edit README.md Good morning, ask deploy execute make all",
    command: JSON.stringify(["node", SAMPLE_AGENT]),
    form: AgentForm.JSON_LINES,
    takesSettings: false,
    isDefault: true,
  });
  const robin = await addRobin(context);
  // Nobody may decide on their own push, so the sample's push is Robin's.
  const pushRules = { rules: [{ branches: ["**"], effect: Effect.ASK }] };
  await createClient(OrganizationService, transport).updateOrganizationPolicies(
    { organizationId, agentPolicy: { pushRules } },
    call,
  );
  const projects = createClient(ProjectService, transport);
  const create = async (name: string, remoteUri: string) => {
    const initializer = { specs: [{ spec: { case: "git", value: { remoteUri } } as const }] };
    const { project } = await projects.createProject({ name, initializer }, call);
    return project?.id ?? "";
  };
  const hello = await create("Sample: hello", repositories.hello);
  const tools = await create("Sample: tools", repositories.tools);
  const agents = createClient(AgentService, transport);
  const start = async (projectId: string, name: string, lines: readonly string[], options = call) => {
    const codeContext = { context: { case: "projectId", value: projectId } as const };
    const request = { name, codeContext, userInput: said(lines.join("\n")) };
    return (await agents.startAgent(request, options)).agentExecutionId;
  };
  await start(hello, "Sample: greet", [
    "echo I add a line to the README. Comment on it under Changes, or send me a line such as: edit hello.txt Good night",
    "edit README.md Good morning",
  ]);
  await start(hello, "Sample: ask first", ["ask deploy execute make deploy", "echo That was decided."]);
  await startWorkflows(context, [hello, tools], call);
  const pushed = await start(tools, "Sample: a push", ["edit README.md This line waits to be pushed"], robin);
  return askForPush(context, pushed, robin);
}

/** Adds a second administrator, who requests a push. */
async function addRobin({ store, keys, organizationId, signal }: SampleContext): Promise<CallOptions> {
  const scope = { organizationId };
  const token = await store.write(
    OPERATOR,
    "chartroom serve",
    async (tx) => {
      const accountId = await findOrCreateAccount(tx, "robin@sample.invalid", "Robin (sample)");
      const member = await joinOrganization(tx, scope, accountId, OrganizationRole.ADMIN);
      const description = "sample data";
      const template = { userId: member?.id ?? "", description, validForMs: APPROVAL_MS, readOnly: false };
      return createPersonalToken(tx, scope, keys, template);
    },
    { locks: [organizationId, null] },
  );
  return as(token, signal);
}

async function startWorkflows(
  { transport }: SampleContext,
  projectIds: string[],
  call: CallOptions,
): Promise<void> {
  const report: Step = {
    step: {
      case: "report",
      value: {
        outputs: [
          {
            title: "Lines of the README",
            key: "lines",
            schema: { case: "integer", value: {} },
            extraction: { case: "command", value: "wc -l < README.md" },
          },
        ],
      },
    },
  };
  await startWorkflow("Sample: count lines", [taskOf("ls"), report]);
  await startWorkflow("Sample: watch the clock", [taskOf(CLOCK)]);

  async function startWorkflow(name: string, steps: Step[]) {
    const workflows = createClient(WorkflowService, transport);
    const context = { context: { case: "projects", value: { projectIds } } } as const;
    const triggers = [{ trigger: { case: "manual", value: {} }, context } as const];
    const action = { limits: { maxParallel: 2, maxTotal: 10 }, steps };
    const { workflow } = await workflows.createWorkflow({ name, triggers, action }, call);
    await workflows.startWorkflow({ workflowId: workflow?.id ?? "" }, call);
  }
}

function taskOf(command: string): Step {
  return { step: { case: "task", value: { command } } };
}

/** Requests the push of a run's changes, once its turn is over. @returns a function that executes it */
async function askForPush(
  { transport }: SampleContext,
  runId: string,
  call: CallOptions,
): Promise<() => Promise<void>> {
  const nothing = async () => undefined;
  const environmentId = await environmentAfterTurn(createClient(AgentService, transport), runId, call);
  if (environmentId === undefined) return nothing;
  const environments = createClient(EnvironmentService, transport);
  const request = { environmentId, branch: "sample/push", commitMessage: "Add a line to the README" };
  const push = async () => (await environments.pushEnvironmentBranch(request, call)).push;
  const asked = await push();
  if (asked?.state !== PushState.WAITING_FOR_APPROVAL) return nothing;
  const decided = createClient(EventService, transport).watchEvents(
    {
      scope: { case: "organization", value: true },
      resourceTypeFilters: [{ resourceType: ResourceType.APPROVAL, resourceIds: [asked.approvalId] }],
      // From the beginning, to miss no decision.
      afterSequence: 0n,
    },
    call,
  );
  return async () => {
    for await (const _ of decided) if ((await push())?.state !== PushState.WAITING_FOR_APPROVAL) return;
  };
}

/** Returns the id of a run's environment at the end of its first turn; undefined for a stopped run. */
async function environmentAfterTurn(
  agents: Client<typeof AgentService>,
  agentExecutionId: string,
  call: CallOptions,
): Promise<string | undefined> {
  for await (const { news } of agents.watchAgentExecution({ agentExecutionId }, call)) {
    if (news.case !== "agentExecution") continue;
    const { phase, usedEnvironments = [] } = news.value.status ?? {};
    if (phase === Phase.STOPPED) return undefined;
    if (phase === Phase.WAITING_FOR_INPUT && (await hasAnsweredAll(agents, agentExecutionId, call))) {
      return usedEnvironments[0]?.environmentId;
    }
  }
  return undefined;
}

/** Returns whether a run that waits has had its input: it also waits when its agent has started, before its first turn. */
async function hasAnsweredAll(
  agents: Client<typeof AgentService>,
  agentExecutionId: string,
  call: CallOptions,
): Promise<boolean> {
  // The inputs first: the run's state reflects every input that the agent has received.
  const { inputs } = await agents.listAgentInputs({ agentExecutionId, includePast: true }, call);
  if (inputs.some(({ receipt }) => receipt !== Receipt.SEEN)) return false;
  const { agentExecution } = await agents.getAgentExecution({ agentExecutionId }, call);
  return agentExecution?.status?.phase === Phase.WAITING_FOR_INPUT;
}

import { digestOf } from "../../src/store/approval/approval.ts";
import { built, type Ids, type Operation, page, within } from "./operation.ts";
import { ASKED, type World } from "./world.ts";
import { commentOn } from "./world-work.ts";

const leased = (world: World) => ({ leaseId: world.agentLease, fence: "1" });
const leasedAction = (world: World) => ({ leaseId: world.actionLease, fence: "1" });
const asRunner = (request: Operation["request"], ids: Ids): Operation => ({
  ...built(request, ids),
  token: (world) => world.runnerToken,
});

const RUN: Ids = { agentExecutionId: "agentExecution" };
const CODE_CONTEXT: Ids = within("codeContext", {
  projectId: "project",
  environmentId: "environment",
  "contextUrl.environmentClassId": "environmentClass",
});
const REVIEWED: Ids = { agentExecutionId: "heldAgentExecution" };
const DRAFT: Ids = { draftId: "reviewDraft" };
const REVIEW_DRAFT: Ids = { "userInput.inputs[].review.draftId": "reviewDraft" };
const reviewed = (world: World) => ({ agentExecutionId: world.heldAgentExecution });
const run = (world: World) => ({ agentExecutionId: world.agentExecution });
const approval = (world: World) => ({ approvalId: world.approval });
const endedRun = (world: World) => ({ agentExecutionId: world.endedAgentExecution });

/** Agent runs, and what runners call for them. */
export const AGENT_OPERATIONS: Readonly<Record<string, Operation>> = {
  "AgentService/StartAgent": built(
    (world) => ({
      agentId: world.agent,
      codeContext: {
        contextUrl: {
          url: "https://git.example.org/team/hello/pull/7",
          environmentClassId: world.environmentClass,
        },
        pullRequest: { id: "7", title: "Say hello", url: "https://git.example.org/team/hello/pull/7" },
      },
      name: "Fix the build",
      workflowActionId: world.workflowAction,
      mode: "AGENT_MODE_PLANNING",
      runnerId: world.runner,
      annotations: { "example.org/ticket": "7" },
      sessionId: world.session,
      extAgentSettings: { reasoningEffort: "EXT_AGENT_REASONING_EFFORT_HIGH" },
      turnOptions: { modes: ["AGENT_MODE_SPEC"] },
    }),
    {
      agentId: "agent",
      runnerId: "runner",
      sessionId: "session",
      workflowActionId: "workflowAction",
      resumeFrom: "endedAgentExecution",
      ...CODE_CONTEXT,
      ...REVIEW_DRAFT,
    },
  ),
  "AgentService/ForkAgentExecution": built(
    (world) => ({
      agentExecutionId: world.heldAgentExecution,
      name: "Another way",
      userInput: { id: "first", inputs: [{ text: { content: "try it otherwise" } }] },
      turnOptions: { modes: ["AGENT_MODE_SPEC"] },
    }),
    { agentExecutionId: "heldAgentExecution", ...REVIEW_DRAFT },
  ),
  "AgentService/SendToAgentExecution": built(
    (world) => ({ ...run(world), userInput: { inputs: [{ text: { content: "go on" } }] } }),
    { ...RUN, ...REVIEW_DRAFT },
  ),
  "AgentService/GetAgentExecution": built(run, RUN),
  "AgentService/ListAgentExecutions": built(() => page, {
    "filter.projectIds[]": "project",
    "filter.sessionIds[]": "session",
    "filter.agentExecutionIds[]": "agentExecution",
  }),
  "AgentService/StopAgentExecution": built(run, RUN),
  "AgentService/DeleteAgentExecution": built(endedRun, { agentExecutionId: "endedAgentExecution" }),
  "AgentService/WatchAgentExecution": built(run, RUN),
  "AgentService/ListAgentOutputBlocks": built(
    (world) => ({
      agentExecutionId: world.heldAgentExecution,
      view: "AGENT_OUTPUT_VIEW_FOLDED",
      ...page,
    }),
    { agentExecutionId: "heldAgentExecution" },
  ),
  "AgentService/ListAgentInputs": built((world) => ({ ...run(world), ...page }), RUN),
  "AgentService/ListAgents": built(() => page),
  "AgentService/CreateAgent": built(() => ({
    name: "Careful",
    description: "reads before it writes",
    takesSettings: true,
    definition: {
      kind: "AGENT_KIND_ACP",
      command: "careful",
      arguments: ["--protocol", "acp"],
      variables: { CAREFUL_STYLE: "slow" },
    },
  })),
  "AgentService/UpdateAgent": built(
    (world) => ({
      agentId: world.definedAgent,
      name: "Quick",
      description: "writes before it reads",
      takesSettings: false,
      definition: { kind: "AGENT_KIND_TEXT", command: "quick", arguments: ["-"] },
    }),
    { agentId: "definedAgent" },
  ),
  "AgentService/DeleteAgent": built((world) => ({ agentId: world.definedAgent }), {
    agentId: "definedAgent",
  }),
  "AgentReviewService/ListAgentReviews": built((world) => ({ ...reviewed(world), ...page }), REVIEWED),
  "AgentReviewService/CreateAgentReviewDraft": built(
    (world) => ({ ...reviewed(world), summary: "Nearly there.", comments: [commentOn("0".repeat(64))] }),
    REVIEWED,
  ),
  "AgentReviewService/UpdateAgentReviewDraft": built(
    (world) => ({ draftId: world.reviewDraft, revision: "1", summary: "Done." }),
    DRAFT,
  ),
  "AgentReviewService/ListAgentReviewDrafts": built((world) => ({ ...reviewed(world), ...page }), REVIEWED),
  "AgentReviewService/DeleteAgentReviewDraft": built((world) => ({ draftId: world.reviewDraft }), DRAFT),
  "ApprovalService/ListApprovals": built(() => page, {
    "filter.agentExecutionIds[]": "agentExecution",
    "filter.workflowExecutionIds[]": "workflowExecution",
  }),
  "ApprovalService/GetApproval": built(approval, { approvalId: "approval" }),
  "ApprovalService/DecideApproval": built(
    (world) => ({
      ...approval(world),
      digest: digestOf(ASKED.requestJson),
      decision: "DECISION_APPROVE",
      reason: "the tests are harmless",
    }),
    { approvalId: "approval" },
  ),

  "AgentWorkService/StreamInputs": asRunner(leased, { leaseId: "agentLease" }),
  "AgentWorkService/ReportAgent": asRunner(
    (world) => ({
      ...leased(world),
      blocks: [
        { sequence: "3", text: { content: "The build is mended." } },
        { sequence: "4", fileChange: { path: "README.md", kind: "KIND_MODIFIED", diff: "-a\n+b\n" } },
      ],
      state: "STATE_WAITING",
      interests: [{ id: "in a minute", timer: "60s" }],
      usage: { iterations: "1", inputTokens: "700", outputTokens: "30" },
      mode: "AGENT_MODE_EXECUTION",
      currentActivity: "waits for the build",
    }),
    {
      leaseId: "agentLease",
      "interests[].subAgentId": "agentExecution",
      "interests[].environment.environmentId": "environment",
    },
  ),
  "AgentWorkService/ReportAgents": asRunner(
    (world) => ({
      reports: [
        { ...leased(world), state: "STATE_WAITING", interests: [{ id: "in a minute", timer: "60s" }] },
      ],
    }),
    {
      "reports[].leaseId": "agentLease",
      "reports[].interests[].subAgentId": "agentExecution",
      "reports[].interests[].environment.environmentId": "environment",
    },
  ),
  "AgentWorkService/StartSubagent": asRunner(
    (world) => ({ ...leased(world), name: "Helper", prompt: "look into the failing test", key: "helper" }),
    { leaseId: "agentLease", agentId: "agent" },
  ),
  "AgentWorkService/RequestApproval": asRunner(
    (world) => ({
      ...leased(world),
      toolCallId: "call-1",
      toolCall: { title: "Run the tests", kind: "TOOL_KIND_EXECUTE", tool: "shell", input: "make test" },
      options: [{ id: "yes", name: "Run them", kind: "KIND_ALLOW_ONCE" }],
    }),
    { leaseId: "agentLease" },
  ),
  "AgentWorkService/StartStepAgent": asRunner(leasedAction, { leaseId: "actionLease" }),
  "AgentWorkService/GetStepAgent": asRunner(
    (world) => ({ ...leasedAction(world), agentExecutionId: world.stepAgentExecution }),
    { leaseId: "actionLease", agentExecutionId: "stepAgentExecution" },
  ),
};

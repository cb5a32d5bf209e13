import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import {
  type AgentWorkService,
  type ReportAgentRequest,
  type RequestApprovalRequest,
  type RequestApprovalResponseSchema,
  type StartSubagentRequest,
  ReportAgentRequest_State as State,
  StreamInputsResponseSchema,
} from "#gen/runner/v1/agent_work_service_pb.js";
import {
  AgentForm,
  AgentWorkSchema,
  type PoliciesSchema,
  type WorkSecretSchema,
} from "#gen/runner/v1/work_pb.js";
import {
  AgentExecutionSchema,
  type AgentOutputBlock,
  AgentExecution_Phase as Phase,
  AgentOutputBlock_Plan_State as StepState,
  AgentOutputBlock_ToolCall_State as ToolState,
} from "#gen/service/v1/agent_pb.js";
import { EnvironmentSchema } from "#gen/service/v1/environment_pb.js";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { AcpLimits } from "../../src/runner/agent/acp/acp-limits.ts";
import { executeAgent } from "../../src/runner/agent/agent-work.ts";
import type { Assignment, RunnerTools } from "../../src/runner/protocol/assignment.ts";
import { createWorkspace, workspaceAt } from "../../src/runner/steps/workspace.ts";
import { leasedAssignment } from "./assignment.ts";

const RUN = "01900000-0000-7000-8000-00000000000c";
const ENVIRONMENT = "01900000-0000-7000-8000-00000000000d";
const TOKEN = "cr_env_0123456789";

type InputDelivery = Omit<MessageInitShape<typeof StreamInputsResponseSchema>, "$typeName" | "$unknown">;

/** The agent to run, and how the fake service reacts to it. */
export interface RunningAgentOptions {
  /** Program and arguments. */
  readonly command: readonly string[];
  readonly form?: AgentForm;
  readonly work?: MessageInitShape<typeof AgentWorkSchema>;
  /** Time limits of an agent of the form ACP; those of the runner when absent. */
  readonly acpLimits?: AcpLimits;
  readonly policies?: MessageInitShape<typeof PoliciesSchema>;
  readonly secrets?: MessageInitShape<typeof WorkSecretSchema>[];
  /** True to reuse the environment of an earlier run; otherwise a new one is made. */
  readonly keepWorkspace?: boolean;
  /** Throws to reject a report. */
  readonly onReport?: (report: ReportAgentRequest) => void | Promise<void>;
  readonly onSubagent?: (request: StartSubagentRequest) => string | Promise<string>;
  /** Answers what the agent asks for; everything is allowed when absent. */
  readonly onApproval?: (
    request: RequestApprovalRequest,
  ) => NonNullable<MessageInitShape<typeof RequestApprovalResponseSchema>["answer"]>;
}

/** An agent that a runner drives against a fake service. */
export interface RunningAgent {
  readonly assignment: Assignment;
  /** Delivers an input. */
  send(handed: InputDelivery): void;
  /** Delivers a user's message. */
  say(id: string, text: string, more?: InputDelivery): void;
  /** Closes the stream of inputs; the runner reopens it, and it begins with the unacknowledged inputs. */
  dropInputStream(): void;
  /** Every accepted report, in order. */
  readonly reports: readonly ReportAgentRequest[];
  seenInputIds(): string[];
  /** Returns all blocks in order, each as `text: hello`; their sequence numbers have been checked. */
  output(): string[];
  /** Returns the reported states, in order. */
  states(): string[];
  /**
   * Resolves once the condition holds, which is evaluated after each report;
   * rejects when the runner's part ends before.
   */
  until(holds: () => boolean): Promise<void>;
  /** Resolves when the runner's part ends, with its error or undefined. */
  readonly ended: Promise<unknown>;
}

/** Returns a rejection as the service would send it. */
export function refusal(message: string): ConnectError {
  const detail = create(ErrorDetailSchema, { reason: ErrorReason.VALUE_UNUSABLE });
  return new ConnectError(message, Code.InvalidArgument, undefined, [
    { desc: ErrorDetailSchema, value: detail },
  ]);
}

/** Starts an agent in an empty environment that is already up. */
export async function startRunningAgent(
  tools: RunnerTools,
  options: RunningAgentOptions,
): Promise<RunningAgent> {
  const {
    command,
    form = AgentForm.JSON_LINES,
    work = {},
    policies = {},
    secrets = [],
    onReport,
    onSubagent,
    onApproval,
  } = options;
  const workspace = workspaceAt(tools.workspaces, ENVIRONMENT);
  if (!options.keepWorkspace) await createWorkspace(tools.programs, workspace, async () => []);
  const unacknowledged: InputDelivery[] = [];
  const reports: ReportAgentRequest[] = [];
  const blocks: ReportAgentRequest["blocks"] = [];
  const checks = new Set<() => void>();
  let news = Promise.withResolvers<void>();
  let stream = 0;
  const notify = () => {
    news.resolve();
    news = Promise.withResolvers();
  };
  const service: Partial<ServiceImpl<typeof AgentWorkService>> = {
    async *streamInputs(_request, { signal }) {
      stream++;
      const mine = stream;
      signal.addEventListener("abort", notify);
      for (let sent: InputDelivery[] = []; mine === stream && !signal.aborted; ) {
        const next = unacknowledged.find((each) => !sent.includes(each));
        if (next) yield create(StreamInputsResponseSchema, next);
        else await news.promise;
        sent = next ? [...sent, next] : sent.filter((each) => unacknowledged.includes(each));
      }
    },
    async reportAgent(report) {
      await onReport?.(report);
      for (const block of report.blocks) {
        if (block.sequence !== BigInt(blocks.length + 1))
          throw new Error(`block ${block.sequence} is out of order`);
        blocks.push(block);
      }
      for (const id of report.seenInputIds) {
        const at = unacknowledged.findIndex(({ input }) => input?.id === id);
        if (at === -1) throw new Error(`${id} was not handed out`);
        unacknowledged.splice(at, 1);
      }
      reports.push(report);
      for (const look of checks) look();
      return { expiresAt: timestampFromMs(Date.now() + 60_000), lastSequence: BigInt(blocks.length) };
    },
    async startSubagent(request) {
      return { agentExecutionId: (await onSubagent?.(request)) ?? "" };
    },
    async requestApproval(request) {
      return { answer: onApproval?.(request) ?? { case: "policy", value: { allowed: true } } };
    },
  };
  const renewal = () => ({ expiresAt: timestampFromMs(Date.now() + 60_000) });
  const assignment = leasedAssignment(
    tools,
    { environmentToken: TOKEN, policies, secrets },
    { renewLease: renewal },
    service,
  );
  const agentWork = create(AgentWorkSchema, { command: [...command], form, ...work });
  agentWork.environment ??= create(EnvironmentSchema, { id: ENVIRONMENT });
  agentWork.agentExecution ??= create(AgentExecutionSchema, { id: RUN, status: { phase: Phase.RUNNING } });
  const ended = executeAgent(assignment, agentWork, options.acpLimits).then(
    () => undefined,
    (error) => error,
  );
  return {
    assignment,
    send(handed) {
      unacknowledged.push(handed);
      notify();
    },
    say(id, text, more = {}) {
      const inputs = [{ input: { case: "text" as const, value: { content: text } } }];
      unacknowledged.push({ ...more, input: { id, input: { case: "userInput", value: { inputs } } } });
      notify();
    },
    dropInputStream() {
      stream++;
      notify();
    },
    reports,
    seenInputIds: () => reports.flatMap(({ seenInputIds }) => seenInputIds),
    output: () => blocks.map((block) => `${block.block.case}: ${wordsOf(block)}`),
    states: () => reports.filter(({ state }) => state !== State.UNSPECIFIED).map(({ state }) => State[state]),
    until(holds) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const look = () => {
        if (!holds()) return;
        checks.delete(look);
        resolve();
      };
      checks.add(look);
      look();
      ended.then((cause) => {
        look();
        reject(new Error("the runner's part ended before what was waited for", { cause }));
      });
      return promise;
    },
    ended,
  };
}

function wordsOf({ block }: AgentOutputBlock): string {
  switch (block.case) {
    case "text":
      return block.value.content;
    case "fileChange":
      return block.value.path;
    case "toolRequest":
      return `${block.value.name} ${block.value.arguments}`;
    case "error":
    case "question":
      return block.value.message;
    case "toolCall":
      return `${block.value.id} ${block.value.title} ${ToolState[block.value.state]}`;
    case "plan":
      return block.value.entries.map(({ content, state }) => `${content} ${StepState[state]}`).join(", ");
    case "thought":
      return block.value.content;
    case "usage":
      return `${block.value.contextUsed} of ${block.value.contextSize}`;
    default:
      return "";
  }
}

import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type AgentExecution,
  AgentExecutionFailureReason,
  AgentExecutionRole,
  type AgentInput,
  type AgentOutputBlock,
  AgentOutputBlock_ToolCall_Kind as ToolKind,
  AgentOutputBlock_ToolCall_State as ToolState,
} from "#gen/service/v1/agent_pb.js";
import { foldBlock, foldKey } from "../domain/agent/agent-output-fold.ts";
import { partSpanId, spanIdOf, type TraceParent } from "../domain/trace/trace-context.ts";
import { type Span, valueName } from "./span.ts";

/** Returns the span of an agent execution that has ended at a time. */
export function agentSpan(
  organizationId: string,
  { id, metadata, spec, status }: AgentExecution,
  trace: TraceParent,
  end: number,
): Span {
  const failure = status?.failureReason ?? AgentExecutionFailureReason.UNSPECIFIED;
  const hasFailed = failure !== AgentExecutionFailureReason.UNSPECIFIED || status?.failureMessage !== "";
  return {
    traceId: trace.traceId,
    spanId: spanIdOf(id),
    parentSpanId: trace.parentSpanId,
    name: "agent run",
    start: metadata?.createdAt ? timestampMs(metadata.createdAt) : end,
    end,
    attributes: {
      "chartroom.organization.id": organizationId,
      "chartroom.agent_execution.id": id,
      "chartroom.agent.id": spec?.agentId ?? "",
      "chartroom.agent.role": valueName(AgentExecutionRole, metadata?.role),
      "chartroom.environment.id": status?.usedEnvironments[0]?.environmentId ?? "",
      "chartroom.end": hasFailed ? "failed" : "stopped",
      ...(hasFailed && { "chartroom.reason": valueName(AgentExecutionFailureReason, failure) }),
    },
    hasFailed,
  };
}

/** A turn of an agent that has ended. */
export interface EndedTurn {
  /** Position in the delivery order before its first input. It identifies the turn within its agent execution. */
  readonly after: number;
  /** The inputs that the agent received in it, at least one. */
  readonly inputs: readonly AgentInput[];
  /** Its output blocks in order; those other than tool calls may be omitted. */
  readonly blocks: readonly AgentOutputBlock[];
  /** When the previous turn ended, at the earliest; undefined for the first turn. */
  readonly freeSince: number | undefined;
  readonly end: number;
}

/** Returns the spans of a turn and of its tool calls. */
export function turnSpans(execution: AgentExecution, turn: EndedTurn, { traceId }: TraceParent): Span[] {
  const { id } = execution;
  const { after, inputs, blocks, freeSince = 0, end } = turn;
  const arrivals = inputs.map(({ createdAt }) => timeOf(createdAt, end));
  const whole: Span = {
    traceId,
    spanId: partSpanId(id, `turn ${after}`),
    parentSpanId: spanIdOf(id),
    name: "turn",
    start: Math.min(end, Math.max(freeSince, Math.min(...arrivals))),
    end,
    attributes: { "chartroom.agent_execution.id": id, "chartroom.turn.inputs": inputs.length },
    hasFailed: blocks.some(({ block }) => block.case === "error"),
  };
  return [whole, ...toolSpans(id, whole, blocks)];
}

function toolSpans(id: string, turn: Span, blocks: readonly AgentOutputBlock[]): Span[] {
  const spans: Span[] = [];
  const calls = new Map<string, AgentOutputBlock>();
  const ends = new Map<string, number>();
  const add = (block: AgentOutputBlock, end: number, attributes: Span["attributes"], hasFailed: boolean) =>
    spans.push({
      traceId: turn.traceId,
      spanId: partSpanId(id, `tool ${block.sequence}`),
      parentSpanId: turn.spanId,
      name: "tool call",
      start: timeOf(block.at, turn.end),
      end,
      attributes: { "chartroom.agent_execution.id": id, ...attributes },
      hasFailed,
    });
  for (const block of blocks) {
    const key = block.block.case === "toolCall" ? foldKey(block) : null;
    if (key !== null) {
      calls.set(key, foldBlock(calls.get(key), block));
      ends.set(key, timeOf(block.at, turn.end));
    }
    // The agent's protocol reports only that it made the call.
    if (block.block.case === "toolRequest") add(block, timeOf(block.at, turn.end), {}, false);
  }
  for (const [key, call] of calls) {
    if (call.block.case !== "toolCall") continue;
    const { kind, state } = call.block.value;
    const attributes = {
      "chartroom.tool.kind": valueName(ToolKind, kind),
      "chartroom.end": valueName(ToolState, state),
    };
    add(call, ends.get(key) ?? turn.end, attributes, state === ToolState.FAILED);
  }
  return spans;
}

function timeOf(at: Timestamp | undefined, otherwise: number): number {
  return at ? timestampMs(at) : otherwise;
}

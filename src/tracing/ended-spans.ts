import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { AgentOutputBlock } from "#gen/service/v1/agent_pb.js";
import type { WorkflowStep } from "#gen/service/v1/workflow_pb.js";
import type { Outcome, TracedSubject } from "../domain/measures.ts";
import type { TraceParent } from "../domain/trace/trace-context.ts";
import { stepsOf } from "../domain/workflow/execution/workflow-action.ts";
import { findAgentExecution, type StoredAgentExecution } from "../store/agent/agent-execution.ts";
import { findTurnInputs, type TurnPlaces } from "../store/agent/agent-input-turn.ts";
import { findOutputBefore } from "../store/agent/agent-output.ts";
import type { Reader } from "../store/store.ts";
import { findAction } from "../store/workflow/workflow-action.ts";
import { findWholeExecution } from "../store/workflow/workflow-execution.ts";
import { agentSpan, turnSpans } from "./agent-spans.ts";
import type { Span } from "./span.ts";
import { actionSpans, executionSpan } from "./workflow-spans.ts";

/** Maximum blocks of a turn that are read for its tool calls, and how many at a time. */
const TURN_BLOCKS = 1_000;
const BLOCKS_AT_ONCE = 100;
/** Maximum inputs of a turn that are read. */
const TURN_INPUTS = 100;
/** Maximum executions whose facts are cached; the facts never change. */
const KEPT_EXECUTIONS = 64;

/** The facts of an execution that the spans of its actions need. */
interface ExecutionFacts {
  readonly trace: TraceParent | undefined;
  readonly kinds: Readonly<Record<"action" | "report", readonly WorkflowStep["step"]["case"][]>>;
}

/** Reads rows of what has ended, and returns their spans. */
export class EndedSpans {
  readonly #reader: Reader;
  readonly #executions = new Map<string, ExecutionFacts>();

  constructor(reader: Reader) {
    this.#reader = reader;
  }

  /** Returns the spans of one thing that has ended; none when it was removed or its trace is not exported. */
  async read(of: Outcome["of"], subject: TracedSubject): Promise<readonly Span[]> {
    switch (of) {
      case "workflow execution":
        return this.#ofExecution(subject);
      case "action":
        return this.#ofAction(subject);
      case "agent turn":
        return this.#ofTurn(subject);
      case "agent execution":
        return this.#ofAgent(subject);
      default:
        return [];
    }
  }

  async #ofExecution(subject: TracedSubject): Promise<readonly Span[]> {
    const stored = await findWholeExecution(this.#reader, subject, subject.id);
    const trace = stored?.execution.metadata?.trace;
    if (!stored || !trace?.sampled) return [];
    return [executionSpan(subject.organizationId, stored.toResponse(), trace)];
  }

  async #ofAction(subject: TracedSubject): Promise<readonly Span[]> {
    const action = await findAction(this.#reader, subject, subject.id);
    if (!action) return [];
    const facts = await this.#factsOf(subject, action.metadata?.workflowExecutionId ?? "");
    if (!facts?.trace?.sampled) return [];
    return actionSpans(action, facts.kinds[action.metadata?.report ? "report" : "action"], facts.trace);
  }

  async #factsOf(
    { organizationId }: TracedSubject,
    executionId: string,
  ): Promise<ExecutionFacts | undefined> {
    const known = this.#executions.get(executionId);
    if (known) return known;
    const stored = await findWholeExecution(this.#reader, { organizationId }, executionId);
    if (!stored) return undefined;
    const { execution } = stored;
    const facts = {
      trace: execution.metadata?.trace,
      kinds: {
        action: stepsOf(execution, { metadata: { report: false } }).map(({ step }) => step.case),
        report: stepsOf(execution, { metadata: { report: true } }).map(({ step }) => step.case),
      },
    };
    this.#executions.set(executionId, facts);
    const [oldest] = this.#executions.keys();
    if (this.#executions.size > KEPT_EXECUTIONS && oldest !== undefined) this.#executions.delete(oldest);
    return facts;
  }

  async #ofTurn(subject: TracedSubject): Promise<readonly Span[]> {
    const stored = await findAgentExecution(this.#reader, subject, subject.id);
    const trace = stored?.execution.metadata?.trace;
    if (!stored || !trace?.sampled || !subject.turn) return [];
    return this.#spansOfTurn(stored, subject.turn, subject.at, trace);
  }

  async #ofAgent(subject: TracedSubject): Promise<readonly Span[]> {
    const stored = await findAgentExecution(this.#reader, subject, subject.id);
    const trace = stored?.execution.metadata?.trace;
    if (!stored || !trace?.sampled) return [];
    const whole = agentSpan(subject.organizationId, stored.execution, trace, subject.at);
    // It may have ended in the middle of a turn.
    const open = { after: stored.progress.doneThrough ?? 0, through: Number.MAX_SAFE_INTEGER };
    return [whole, ...(await this.#spansOfTurn(stored, open, subject.at, trace))];
  }

  async #spansOfTurn(
    { execution, lastSequence }: StoredAgentExecution,
    places: TurnPlaces,
    end: number,
    trace: TraceParent,
  ): Promise<readonly Span[]> {
    const inputs = await findTurnInputs(this.#reader, execution.id, places, TURN_INPUTS);
    if (inputs.length === 0) return [];
    const ids = new Set(inputs.map(({ id }) => id));
    const blocks: AgentOutputBlock[] = [];
    let earlier: AgentOutputBlock | undefined;
    let before = lastSequence + 1;
    for (let read = 0; read < TURN_BLOCKS && !earlier; read += BLOCKS_AT_ONCE) {
      const found = await findOutputBefore(this.#reader, execution.id, before, BLOCKS_AT_ONCE);
      for (const block of found) {
        // Blocks of a turn that has begun since come first.
        if (ids.has(block.inputId)) blocks.push(block);
        else if (blocks.length > 0) earlier ??= block;
        if (earlier) break;
      }
      if (found.length < BLOCKS_AT_ONCE) break;
      before = Number(found.at(-1)?.sequence);
    }
    const turn = {
      after: places.after,
      inputs,
      blocks: blocks.reverse(),
      freeSince: earlier?.at && timestampMs(earlier.at),
      end,
    };
    return turnSpans(execution, turn, trace);
  }
}

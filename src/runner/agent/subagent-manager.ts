import { randomUUID } from "node:crypto";
import { ConnectError } from "@connectrpc/connect";
import { AgentMessage_Role as Role } from "#gen/service/v1/agent_pb.js";
import type { Lease } from "../protocol/lease.ts";
import type { AgentFacts } from "./agent-facts.ts";
import type { InputLine } from "./agent-input-encoding.ts";
import type { OutgoingMessage, SubagentRequest } from "./agent-message-parsing.ts";

/** Number of sub-agents that may be starting at the same time before the agent's next line has to wait. */
const MAX_PENDING_STARTS = 8;

/** Starts the sub-agents of an agent's execution and sends its messages to other executions. */
export class SubagentManager {
  readonly #lease: Lease;
  readonly #facts: AgentFacts;
  readonly #writeLine: (line: InputLine) => Promise<void>;
  readonly #children: Set<string>;
  readonly #pending = new Set<Promise<void>>();

  /** @param writeLine writes the results of the agent's requests to the agent */
  constructor(lease: Lease, facts: AgentFacts, writeLine: (line: InputLine) => Promise<void>) {
    this.#lease = lease;
    this.#facts = facts;
    this.#writeLine = writeLine;
    this.#children = new Set(facts.subagentRunIds);
  }

  /**
   * Sends the agent's message to another execution. An idempotency key makes sure that a retry does not send it twice.
   *
   * @throws ConnectError when the service refuses it
   */
  async send({ to, type, payload }: OutgoingMessage): Promise<void> {
    const headers = { "idempotency-key": randomUUID() };
    const value = { type, payload, role: this.#roleFor(to), senderExecutionId: this.#facts.runId };
    const request = { agentExecutionId: to, input: { case: "agentMessage" as const, value } };
    await this.#lease.call((client, _name, options) =>
      client.sendToAgentExecution(request, { ...options, headers }),
    );
  }

  /**
   * Begins to start a sub-agent; resolves when there is room for another request. The agent's other lines are
   * handled in the meantime.
   */
  async request(request: SubagentRequest): Promise<void> {
    const started: Promise<void> = this.#start(request)
      .then((line) => this.#writeLine(line))
      // This rejects only when the lease is lost, which ends the execution.
      .catch(() => undefined)
      .finally(() => this.#pending.delete(started));
    this.#pending.add(started);
    if (this.#pending.size >= MAX_PENDING_STARTS) await Promise.race(this.#pending);
  }

  /** Returns the role of this execution in relation to another. */
  #roleFor(runId: string): Role {
    if (runId === this.#facts.parentRunId) return Role.CHILD;
    return this.#children.has(runId) ? Role.PARENT : Role.UNSPECIFIED;
  }

  async #start(request: SubagentRequest): Promise<InputLine> {
    const { key } = request;
    try {
      const { agentExecutionId } = await this.#lease.call((client, name, options) =>
        client.startSubagent({ ...request, ...name }, options),
      );
      this.#children.add(agentExecutionId);
      return { type: "subagent_started", key, run: agentExecutionId };
    } catch (error) {
      if (!(error instanceof ConnectError)) throw error;
      return { type: "subagent_refused", key, message: error.rawMessage };
    }
  }
}

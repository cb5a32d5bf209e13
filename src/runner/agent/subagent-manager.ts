import { randomUUID } from "node:crypto";
import { ConnectError } from "@connectrpc/connect";
import { AgentMessage_Role as Role } from "#gen/service/v1/agent_pb.js";
import type { Lease } from "../protocol/lease.ts";
import type { AgentFacts } from "./agent-facts.ts";
import type { InputLine } from "./agent-input-encoding.ts";
import type { RunMessage, SubagentRequest } from "./agent-message-parsing.ts";

/** So many sub-agents may be under way to be started before the agent has to wait with the next. */
const MOST_WISHES = 8;

/** The runs around an agent's: its sub-agents, which it starts, and whoever it speaks to. */
export class SubagentManager {
  readonly #lease: Lease;
  readonly #facts: AgentFacts;
  readonly #tell: (line: InputLine) => Promise<void>;
  readonly #children: Set<string>;
  readonly #wishes = new Set<Promise<void>>();

  /** @param tell tells the agent what came of its wishes */
  constructor(lease: Lease, facts: AgentFacts, tell: (line: InputLine) => Promise<void>) {
    this.#lease = lease;
    this.#facts = facts;
    this.#tell = tell;
    this.#children = new Set(facts.subagentRunIds);
  }

  /**
   * Passes on what the agent says to another run; once, also when the answer to a
   * call was lost.
   *
   * @throws ConnectError when the service refuses it
   */
  async speak({ to, type, payload }: RunMessage): Promise<void> {
    const headers = { "idempotency-key": randomUUID() };
    const value = { type, payload, role: this.#roleFor(to), senderExecutionId: this.#facts.runId };
    const request = { agentExecutionId: to, input: { case: "agentMessage" as const, value } };
    await this.#lease.ask((client, _name, options) =>
      client.sendToAgentExecution(request, { ...options, headers }),
    );
  }

  /** Resolves when there is room for another wish: what the agent says besides is heard meanwhile. */
  async wish(wish: SubagentRequest): Promise<void> {
    const granted: Promise<void> = this.#grant(wish)
      .then((line) => this.#tell(line))
      // Only the loss of the lease, which ends the run by itself.
      .catch(() => undefined)
      .finally(() => this.#wishes.delete(granted));
    this.#wishes.add(granted);
    if (this.#wishes.size >= MOST_WISHES) await Promise.race(this.#wishes);
  }

  /** What this run is to another. */
  #roleFor(runId: string): Role {
    if (runId === this.#facts.parentRunId) return Role.CHILD;
    return this.#children.has(runId) ? Role.PARENT : Role.UNSPECIFIED;
  }

  async #grant(wish: SubagentRequest): Promise<InputLine> {
    const { key } = wish;
    try {
      const { agentExecutionId } = await this.#lease.ask((client, name, options) =>
        client.startSubagent({ ...wish, ...name }, options),
      );
      this.#children.add(agentExecutionId);
      return { type: "subagent_started", key, run: agentExecutionId };
    } catch (error) {
      if (!(error instanceof ConnectError)) throw error;
      return { type: "subagent_refused", key, message: error.rawMessage };
    }
  }
}

import { ConnectError } from "@connectrpc/connect";
import type { SubagentWish } from "./agent-said.ts";
import type { ToldLine } from "./agent-told.ts";
import type { Lease } from "./lease.ts";

/** So many sub-agents may be under way to be started before the agent has to wait with the next. */
const MOST_WISHES = 8;

/** Starts the sub-agents that an agent wants, and tells it what came of each. */
export class Subagents {
  readonly #lease: Lease;
  readonly #tell: (line: ToldLine) => Promise<void>;
  readonly #wishes = new Set<Promise<void>>();

  constructor(lease: Lease, tell: (line: ToldLine) => Promise<void>) {
    this.#lease = lease;
    this.#tell = tell;
  }

  /** Resolves when there is room for another wish: what the agent says besides is heard meanwhile. */
  async wish(wish: SubagentWish): Promise<void> {
    const granted: Promise<void> = this.#grant(wish)
      .then((line) => this.#tell(line))
      // Only the loss of the lease, which ends the run by itself.
      .catch(() => undefined)
      .finally(() => this.#wishes.delete(granted));
    this.#wishes.add(granted);
    if (this.#wishes.size >= MOST_WISHES) await Promise.race(this.#wishes);
  }

  async #grant(wish: SubagentWish): Promise<ToldLine> {
    const { key } = wish;
    try {
      const { agentExecutionId } = await this.#lease.ask((client, name, options) =>
        client.startSubagent({ ...wish, ...name }, options),
      );
      return { type: "subagent_started", key, run: agentExecutionId };
    } catch (error) {
      if (!(error instanceof ConnectError)) throw error;
      return { type: "subagent_refused", key, message: error.rawMessage };
    }
  }
}

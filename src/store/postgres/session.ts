import { performance } from "node:perf_hooks";
import type pg from "pg";
import type { Listeners } from "../listeners.ts";
import { StoreUnavailable } from "../store.ts";
import { type DatabaseAddress, sessionConfig, waitForEnd } from "./connection.ts";
import { joinLevel } from "./feature-level.ts";
import { holdPresence, type Presence, tryBecomeLeader } from "./locks.ts";
import { OneAtATimeClient } from "./one-at-a-time.ts";
import { markedSettings, requireSettings } from "./requirements.ts";
import { READ_ONLY, storageProblem } from "./storage-problem.ts";

/** The channel of wake-ups. */
const CHANNEL = "chartroom";

/** The channel of messages between servers. */
const OTHERS_CHANNEL = "chartroom_others";

/** The engine accepts payloads of fewer than 8,000 bytes. */
const MAX_PAYLOAD_BYTES = 7_900;

/** Minimum time between two batches of topics: topics in between are sent together, any other at once. */
const BATCH_MS = 5;

/** Interval between checks for commits whose wake-up was lost, and between attempts to become leader. */
const CHECK_INTERVAL_MS = 1_000;

/** Maximum interval between attempts to reconnect. It grows with each failure, from {@link CHECK_INTERVAL_MS}. */
const MAX_RETRY_MS = 5_000;

/** Time in milliseconds that a connection may take to end in an orderly way. */
const END_MS = 1_000;

/** The lead: the right to run the jobs, through the connection that holds their lock. */
export interface Leader {
  readonly processId: number;
}

export interface SessionOptions extends DatabaseAddress {
  readonly presence: Presence;
  /** The listeners of this process. */
  readonly listeners: Listeners;
}

/**
 * The one connection of a process that holds locks across transactions: one shows that the process is present, another
 * that it runs the jobs. It also sends and receives wake-ups, which are only hints: a listener reads the rows. All
 * listeners are called once a second when anything was committed since, or when the session cannot tell. A suspended
 * process does not poll; the engine then ends its session, and another process becomes leader.
 */
export class Session {
  readonly #options: SessionOptions;
  readonly #pending = new Set<string>();
  #client: pg.Client | undefined;
  #probing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #sending: NodeJS.Timeout | undefined;
  #sentAt = Number.NEGATIVE_INFINITY;
  #snapshot = "";
  #leader: Leader | undefined;
  #problem: string | undefined;
  #failures = 0;
  #connectsAt = 0;
  #closed = false;
  readonly #messageListeners: ((text: string) => void)[] = [];

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** Connects, and keeps the session for as long as it is open. @throws the engine's error; PresenceRefused; NewerData */
  async open(): Promise<void> {
    await this.#connect();
    this.begin();
  }

  /** Connects after a delay, and again whenever the connection breaks. */
  begin(): void {
    this.#timer ??= setInterval(() => void this.#probe(), CHECK_INTERVAL_MS).unref();
  }

  /** The lead of this process; undefined while another process has it. */
  get leader(): Leader | undefined {
    return this.#leader;
  }

  /** Why the database could not be used at the last check, in words for the operator; undefined while it can. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Sends a text to the other processes, unless the session is not connected or the text is too long. */
  readonly tell = (text: string): void => {
    if (this.#closed || Buffer.byteLength(text) > MAX_PAYLOAD_BYTES) return;
    const notify = { name: "notify", text: "select pg_notify($1, $2)", values: [OTHERS_CHANNEL, text] };
    this.#client?.query(notify).catch(() => {});
  };

  /** Calls `listener` with each text from another process. */
  readonly onMessage = (listener: (text: string) => void): void => {
    this.#messageListeners.push(listener);
  };

  /** Sends the topics of a commit to the other processes, together with those of concurrent commits. */
  send(topics: ReadonlySet<string>): void {
    if (this.#closed) return;
    for (const topic of topics) this.#pending.add(topic);
    if (this.#pending.size === 0) return;
    const waitMs = Math.max(0, this.#sentAt + BATCH_MS - performance.now());
    this.#sending ??= setTimeout(() => void this.#flush(), waitMs);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    clearTimeout(this.#sending);
    await this.#flush();
    this.#closed = true;
    await this.#probing?.catch(() => {});
    this.#leader = undefined;
    if (this.#client) await endClient(this.#client);
  }

  async #connect(): Promise<void> {
    const config = sessionConfig(this.#options, true);
    const { options, mark } = markedSettings(config.options);
    const client = new OneAtATimeClient({ ...config, options });
    const lost = () => {
      if (this.#client !== client) return;
      this.#client = undefined;
      this.#leader = undefined;
    };
    client.on("error", lost);
    client.on("end", lost);
    client.on("notification", ({ processId, channel, payload = "" }) => {
      // Our own message: the listeners of this process were called at its commit.
      if (processId === processIdOf(client)) return;
      if (channel !== OTHERS_CHANNEL) this.#call(payload);
      else for (const listener of this.#messageListeners) listener(payload);
    });
    try {
      await client.connect();
      await requireSettings(client, mark);
      await holdPresence(client, this.#options.presence);
      if (this.#options.presence === "server") await joinLevel(client);
      await client.query(`listen ${CHANNEL}`);
      await client.query(`listen ${OTHERS_CHANNEL}`);
    } catch (error) {
      await endClient(client);
      throw error;
    }
    this.#client = client;
  }

  #call(payload: string): void {
    const { listeners } = this.#options;
    if (payload === "") {
      listeners.callAll();
      return;
    }
    listeners.expect(payload.split("\n"));
    listeners.call();
  }

  async #flush(): Promise<void> {
    this.#sentAt = performance.now();
    const text = [...this.#pending].join("\n");
    this.#pending.clear();
    const payload = Buffer.byteLength(text) > MAX_PAYLOAD_BYTES ? "" : text;
    const notify = { name: "notify", text: "select pg_notify($1, $2)", values: [CHANNEL, payload] };
    // Without a connection, the other processes find the commits when they poll.
    if (text !== "") await this.#client?.query(notify).catch(() => {});
    this.#sending = undefined;
    // Topics collected meanwhile: one batch is in progress at a time, however slow the engine is.
    this.send(new Set());
  }

  async #probe(): Promise<void> {
    const { listeners } = this.#options;
    // The session does not answer or is not connected: each listener checks by itself what was committed.
    if (this.#probing || (!this.#client && performance.now() < this.#connectsAt)) {
      listeners.callAll();
      return;
    }
    this.#probing = this.#probeOnce();
    try {
      await this.#probing;
      this.#failures = 0;
      this.#problem = undefined;
    } catch (error) {
      await this.#giveUp(error);
      listeners.callAll();
    }
    this.#probing = undefined;
  }

  async #probeOnce(): Promise<void> {
    if (!this.#client) await this.#connect();
    const client = this.#client;
    if (!client || this.#closed) return;
    if (this.#options.presence === "server" && !this.#leader && (await tryBecomeLeader(client)))
      this.#leader = { processId: processIdOf(client) };
    const { rows } = await client.query<{ snapshot: string; readOnly: string }>({
      name: "probe",
      text: `select pg_current_snapshot()::text as snapshot, current_setting('transaction_read_only') as "readOnly"`,
    });
    const [{ snapshot, readOnly } = { snapshot: "", readOnly: "" }] = rows;
    // Another connection may reach the new primary after a failover.
    if (readOnly === "on") throw new StoreUnavailable("the database is read-only", { problem: READ_ONLY });
    if (snapshot === this.#snapshot) return;
    this.#snapshot = snapshot;
    this.#options.listeners.callAll();
  }

  /** Ends an unusable session, and schedules the next attempt: later after each failure. */
  async #giveUp(error: unknown): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    this.#leader = undefined;
    this.#problem = storageProblem(error) ?? (error as Error).message;
    const retryMs = Math.min(MAX_RETRY_MS, CHECK_INTERVAL_MS * 2 ** this.#failures);
    this.#failures += 1;
    // Spreads the attempts of several servers over time.
    this.#connectsAt = performance.now() + retryMs * (0.5 + Math.random() / 2);
    if (client) await endClient(client);
  }
}

/** Ends a connection, even when the other end does not answer. */
async function endClient(client: pg.Client): Promise<void> {
  const ending = client.end().catch(() => {});
  await waitForEnd(ending, END_MS);
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
}

/** Returns the id of the engine's process for a connection. */
function processIdOf(client: pg.Client): number {
  return (client as unknown as { readonly processID: number }).processID;
}

import pg from "pg";
import type { Listeners } from "../listeners.ts";
import { type DatabaseAddress, sessionConfig } from "./connection.ts";
import { holdPresence, type Presence, tryToLead } from "./locks.ts";

/** The channel of wake-ups. */
const CHANNEL = "chartroom";

/** The engine takes payloads of fewer than 8,000 bytes. */
const MAX_PAYLOAD_BYTES = 7_900;

/** Time for which topics are collected before they are sent. */
const BATCH_MS = 5;

/** Interval between looks for commits whose wake-up was lost, and between attempts to lead and to connect again. */
const LOOK_MS = 1_000;

/** The process that runs the jobs, by the connection that holds their lock. */
export interface Leader {
  readonly processId: number;
}

export interface SessionOptions extends DatabaseAddress {
  readonly presence: Presence;
  /** The listeners of this process. */
  readonly listeners: Listeners;
}

/**
 * The one connection of a process that holds locks for longer than a transaction: that the process is there, and that
 * it runs the jobs. It also sends and receives wake-ups, which are never the truth: a listener looks at the rows, and
 * all are called once a second when anything was committed since. A process that stands still does not look; the
 * engine then ends the session after 8 s, and another process leads.
 */
export class Session {
  readonly #options: SessionOptions;
  readonly #pending = new Set<string>();
  #client: pg.Client | undefined;
  #connecting: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #sending: NodeJS.Timeout | undefined;
  #snapshot = "";
  #leader: Leader | undefined;
  #closed = false;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** Connects, and keeps the session for as long as it is open. @throws the engine's error; PresenceRefused */
  async open(): Promise<void> {
    await this.#connect();
    this.begin();
  }

  /** Connects a little later, and again whenever the connection breaks. */
  begin(): void {
    this.#timer ??= setInterval(() => void this.#look(), LOOK_MS).unref();
  }

  /** The lead of this process; undefined while another has it. */
  get leader(): Leader | undefined {
    return this.#leader;
  }

  /** Sends the topics of a commit to the other processes, a little later, with those of other commits. */
  send(topics: ReadonlySet<string>): void {
    if (this.#closed) return;
    for (const topic of topics) this.#pending.add(topic);
    this.#sending ??= setTimeout(() => void this.#flush(), BATCH_MS);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    clearTimeout(this.#sending);
    await this.#flush();
    this.#closed = true;
    await this.#connecting?.catch(() => {});
    this.#leader = undefined;
    await this.#client?.end().catch(() => {});
  }

  async #connect(): Promise<void> {
    const client = new pg.Client(sessionConfig(this.#options));
    const lost = () => {
      if (this.#client !== client) return;
      this.#client = undefined;
      this.#leader = undefined;
    };
    client.on("error", lost);
    client.on("end", lost);
    client.on("notification", ({ processId, payload }) => {
      // Its own: the listeners of this process were called when it committed.
      if (processId !== processIdOf(client)) this.#call(payload ?? "");
    });
    try {
      await client.connect();
      await holdPresence(client, this.#options.presence);
      await client.query(`listen ${CHANNEL}`);
    } catch (error) {
      await client.end().catch(() => {});
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
    this.#sending = undefined;
    const text = [...this.#pending].join("\n");
    this.#pending.clear();
    // Without a connection the others find the commits when they look.
    if (text === "" || !this.#client) return;
    const payload = Buffer.byteLength(text) > MAX_PAYLOAD_BYTES ? "" : text;
    await this.#client
      .query({ name: "notify", text: "select pg_notify($1, $2)", values: [CHANNEL, payload] })
      .catch(() => {});
  }

  async #look(): Promise<void> {
    if (this.#connecting) return;
    this.#connecting = this.#lookOnce();
    await this.#connecting.catch(() => {});
    this.#connecting = undefined;
  }

  async #lookOnce(): Promise<void> {
    if (!this.#client) await this.#connect();
    const client = this.#client;
    if (!client || this.#closed) return;
    if (this.#options.presence === "server" && !this.#leader && (await tryToLead(client)))
      this.#leader = { processId: processIdOf(client) };
    const { rows } = await client.query<{ snapshot: string }>({
      name: "snapshot",
      text: "select pg_current_snapshot()::text as snapshot",
    });
    const snapshot = rows[0]?.snapshot ?? "";
    if (snapshot === this.#snapshot) return;
    this.#snapshot = snapshot;
    this.#options.listeners.callAll();
  }
}

/** Returns the number of the engine's process for a connection. */
function processIdOf(client: pg.Client): number {
  return (client as unknown as { readonly processID: number }).processID;
}

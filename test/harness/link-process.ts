import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { createInterface } from "node:readline";
import type { LinkState } from "./database-link.ts";

/** Type of the engine's message that carries a notification (NotificationResponse). */
const NOTIFICATION = "A".charCodeAt(0);

/** Types of the messages that carry statements, or run one by its name behind that of a portal (Query, Bind). */
const QUERY = "Q".charCodeAt(0);
const BIND = "B".charCodeAt(0);

/** Returns the statement of a message, or its name; undefined for other messages. */
function statementOf(message: Buffer): string | undefined {
  if (message[0] === QUERY) return message.toString("utf8", 5, message.length - 1);
  if (message[0] === BIND) return message.toString("utf8", 5).split("\0")[1];
  return undefined;
}

/** What one connection's client has sent since its transaction began. */
class Transaction {
  /** The numbers that follow the marker, of which each write that is to be held has another. */
  readonly marked = new Set<string>();
  isCommitting = false;
  /** True when nothing more of it passes. */
  isHeld = false;

  /** Notes a whole message of the client. */
  read(message: Buffer, marker: string): void {
    const statement = statementOf(message);
    if (statement?.startsWith("begin")) this.marked.clear();
    if (marker !== "" && message.includes(marker)) {
      for (const rest of message.toString("utf8").split(marker).slice(1)) {
        this.marked.add(/^\d*/.exec(rest)?.[0] ?? "");
      }
    }
    if (statement !== undefined) this.isCommitting = statement === "commit";
  }
}

/** What the engine answers to a commit (CommandComplete). */
const COMMITTED = Buffer.from("C\0\0\0\x0bCOMMIT\0", "latin1");

/** Returns a function that returns the whole messages of one side. @param typeBytes 0 for a client, whose first message has no type */
function wholeMessages(typeBytes: 0 | 1): (chunk: Buffer) => Buffer[] {
  let rest: Buffer = Buffer.alloc(0);
  let typed: number = typeBytes;
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const messages: Buffer[] = [];
    while (rest.length >= typed + 4) {
      const end = typed + rest.readInt32BE(typed);
      if (end > rest.length) break;
      messages.push(rest.subarray(0, end));
      rest = rest.subarray(end);
      typed = 1;
    }
    return messages;
  };
}

/** Forwards connections of one client to the database, as far as its state allows. */
class Link {
  readonly #port: number;
  readonly #pairs = new Map<readonly [client: Socket, database: Socket], Transaction>();
  #state: LinkState = "open";
  #marker = "";
  dropped = 0;
  /** Number of writes of the transaction that is held at its commit. */
  held = 0;

  constructor(port: number) {
    this.#port = port;
  }

  listen(): Server {
    return createServer((client) => this.#accept(client)).listen(0, "127.0.0.1");
  }

  enter(state: LinkState, marker = ""): void {
    [this.#state, this.#marker, this.held] = [state, marker, 0];
    for (const [pair, { isHeld }] of this.#pairs) {
      const isBroken = isHeld || pair.some((socket) => socket.destroyed);
      if (state === "refused" || (state !== "silent" && isBroken)) {
        this.#pairs.delete(pair);
        for (const socket of pair) socket.resetAndDestroy();
      } else for (const socket of pair) state === "silent" ? socket.pause() : socket.resume();
    }
  }

  #accept(client: Socket): void {
    if (this.#state === "refused") {
      client.on("error", () => {}).resetAndDestroy();
      return;
    }
    const database = connect(this.#port, "127.0.0.1");
    const pair = [client, database] as const;
    const transaction = new Transaction();
    this.#pairs.set(pair, transaction);
    const [messagesOf, answersOf] = [wholeMessages(0), wholeMessages(1)];
    this.#forward(client, database, (chunk) => {
      const passing = messagesOf(chunk).filter((message) => {
        transaction.read(message, this.#marker);
        return !this.#holds("held-commits", transaction);
      });
      return Buffer.concat(passing);
    });
    this.#forward(database, client, (chunk) => {
      const passing: Buffer[] = [];
      for (const answer of answersOf(chunk)) {
        const isCommitted = transaction.isCommitting && answer.equals(COMMITTED);
        if (isCommitted && this.#state === "unheard-commits") {
          for (const socket of pair) socket.resetAndDestroy();
          return Buffer.alloc(0);
        }
        if (transaction.isHeld || (isCommitted && this.#holds("held-answers", transaction))) continue;
        if (this.#state === "mute" && answer[0] === NOTIFICATION) this.dropped += 1;
        else passing.push(answer);
      }
      return Buffer.concat(passing);
    });
    for (const socket of pair) {
      socket.setNoDelay(true).on("error", () => {});
      if (this.#state === "silent") socket.pause();
      socket.on("close", () => {
        // Nobody at the other end learns of it before the link is open again.
        if (this.#state === "silent") return;
        this.#pairs.delete(pair);
        for (const each of pair) each.destroy();
      });
    }
  }

  /** Returns whether a transaction is held, or is to be held now. */
  #holds(state: "held-commits" | "held-answers", transaction: Transaction): boolean {
    const { isHeld, marked, isCommitting } = transaction;
    if (isHeld || this.#state !== state || marked.size === 0 || !isCommitting) return isHeld;
    transaction.isHeld = true;
    this.held = marked.size;
    return true;
  }

  #forward(from: Socket, to: Socket, passing: (chunk: Buffer) => Buffer): void {
    from.on("data", (chunk: Buffer) => {
      if (!to.write(passing(chunk))) from.pause();
    });
    to.on("drain", () => this.#state !== "silent" && from.resume());
  }
}

const [port = 0, count = 0] = process.argv.slice(2).map(Number);
const links = Array.from({ length: count }, () => new Link(port));
const servers = links.map((link) => link.listen());
await Promise.all(servers.map((server) => once(server, "listening")));
const print = (value: unknown) => process.stdout.write(`${JSON.stringify(value)}\n`);
print(servers.map((server) => (server.address() as { readonly port: number }).port));
for await (const line of createInterface({ input: process.stdin })) {
  const { index, state, marker } = JSON.parse(line) as {
    readonly index: number;
    readonly state?: LinkState;
    readonly marker?: string;
  };
  const link = links[index];
  if (state) link?.enter(state, marker);
  print({ dropped: link?.dropped, held: link?.held });
}
process.exit();

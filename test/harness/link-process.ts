import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { createInterface } from "node:readline";
import type { LinkState } from "./database-link.ts";

/** Type of the engine's message that carries a notification (NotificationResponse). */
const NOTIFICATION = "A".charCodeAt(0);

/** Type of the engine's message that carries statements without values (Query). */
const QUERY = "Q".charCodeAt(0);

/** What one connection's client has sent since its transaction began. */
class Transaction {
  /** Number of writes that share it, each in a savepoint of its own. */
  writes = 0;
  isMarked = false;
  isCommitting = false;
  /** True when nothing more of it passes. */
  isHeld = false;

  /** Notes a whole message of the client. */
  read(message: Buffer, marker: string): void {
    const text = message[0] === QUERY ? message.toString("utf8", 5, message.length - 1) : "";
    if (text.startsWith("begin")) [this.writes, this.isMarked] = [0, false];
    if (text.endsWith("savepoint attempt") && !text.includes("release")) this.writes += 1;
    if (marker !== "" && message.includes(marker)) this.isMarked = true;
    this.isCommitting = text === "commit";
  }
}

/** Returns a function that returns the whole messages of a client; the first has no type. */
function wholeMessages(): (chunk: Buffer) => Buffer[] {
  let rest: Buffer = Buffer.alloc(0);
  let typeBytes = 0;
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const messages: Buffer[] = [];
    while (rest.length >= typeBytes + 4) {
      const end = typeBytes + rest.readInt32BE(typeBytes);
      if (end > rest.length) break;
      messages.push(rest.subarray(0, end));
      rest = rest.subarray(end);
      typeBytes = 1;
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
    const messagesOf = wholeMessages();
    this.#forward(client, database, (chunk) => {
      const passing = messagesOf(chunk).filter((message) => {
        transaction.read(message, this.#marker);
        return !this.#holds("held-commits", transaction);
      });
      return Buffer.concat(passing);
    });
    const withoutNotifications = this.#withoutNotifications();
    this.#forward(database, client, (chunk) => {
      if (this.#holds("held-answers", transaction)) return Buffer.alloc(0);
      if (this.#state !== "unheard-commits" || !transaction.isCommitting) return withoutNotifications(chunk);
      for (const socket of pair) socket.resetAndDestroy();
      return Buffer.alloc(0);
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
    const { isHeld, isMarked, isCommitting, writes } = transaction;
    if (isHeld || this.#state !== state || !isMarked || !isCommitting) return isHeld;
    transaction.isHeld = true;
    this.held = writes;
    return true;
  }

  #forward(from: Socket, to: Socket, passing: (chunk: Buffer) => Buffer): void {
    from.on("data", (chunk: Buffer) => {
      if (!to.write(passing(chunk))) from.pause();
    });
    to.on("drain", () => this.#state !== "silent" && from.resume());
  }

  /** Returns a function that takes the notifications out of what the database sends, while the link is mute. */
  #withoutNotifications(): (chunk: Buffer) => Buffer {
    let rest: Buffer = Buffer.alloc(0);
    return (chunk) => {
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      const messages: Buffer[] = [];
      let begin = 0;
      while (rest.length - begin >= 5) {
        const end = begin + 1 + rest.readInt32BE(begin + 1);
        if (end > rest.length) break;
        if (this.#state === "mute" && rest[begin] === NOTIFICATION) this.dropped += 1;
        else messages.push(rest.subarray(begin, end));
        begin = end;
      }
      rest = rest.subarray(begin);
      return Buffer.concat(messages);
    };
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

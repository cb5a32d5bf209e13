import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { createInterface } from "node:readline";
import type { LinkState } from "./database-link.ts";

/** Type of the engine's message that carries a notification (NotificationResponse). */
const NOTIFICATION = "A".charCodeAt(0);

/** A simple query as it ends a transaction. */
const COMMIT = Buffer.from("commit\0");

/** Forwards connections of one client to the database, as far as its state allows. */
class Link {
  readonly #port: number;
  readonly #pairs = new Set<readonly [client: Socket, database: Socket]>();
  #state: LinkState = "open";
  dropped = 0;

  constructor(port: number) {
    this.#port = port;
  }

  listen(): Server {
    return createServer((client) => this.#accept(client)).listen(0, "127.0.0.1");
  }

  enter(state: LinkState): void {
    this.#state = state;
    for (const pair of this.#pairs) {
      const isBroken = pair.some((socket) => socket.destroyed);
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
    this.#pairs.add(pair);
    const isCommitting = { value: false };
    this.#forward(client, database, (chunk) => {
      isCommitting.value = chunk.includes(COMMIT);
      return chunk;
    });
    const withoutNotifications = this.#withoutNotifications();
    this.#forward(database, client, (chunk) => {
      if (this.#state !== "unheard-commits" || !isCommitting.value) return withoutNotifications(chunk);
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
  const { index, state } = JSON.parse(line) as { readonly index: number; readonly state?: LinkState };
  const link = links[index];
  if (state) link?.enter(state);
  print(link?.dropped);
}
process.exit();

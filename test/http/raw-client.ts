import { once } from "node:events";
import net, { type Socket } from "node:net";

/** An HTTP/1.1 client that sends exactly the given bytes, one at a time if need be. */
export interface RawClient {
  readonly socket: Socket;
  send(text: string | Buffer): void;
  /** Resolves with everything received so far, once it contains the text. */
  until(text: string): Promise<string>;
  /** Resolves with everything received until the connection was closed, and the time since its start. */
  readonly closed: Promise<{ text: string; ms: number; error?: string }>;
}

export async function connectRaw(port: number, connect = plain): Promise<RawClient> {
  const begun = performance.now();
  const socket = await connect(port);
  let received = "";
  let error: string | undefined;
  const closed = Promise.withResolvers<{ text: string; ms: number; error?: string }>();
  const waiting = new Set<() => void>();

  socket.setEncoding("latin1").on("data", (text: string) => {
    received += text;
    for (const check of waiting) check();
  });
  socket.on("error", (reason: NodeJS.ErrnoException) => {
    error = reason.code ?? reason.message;
  });
  socket.on("close", () => {
    closed.resolve({ text: received, ms: performance.now() - begun, ...(error && { error }) });
    for (const check of waiting) check();
  });
  return {
    socket,
    send: (text) => void socket.write(text),
    until: (text) =>
      new Promise((resolve, reject) => {
        const check = (): void => {
          if (received.includes(text)) resolve(received);
          else if (socket.destroyed) reject(new Error(`closed before ${text}: ${received}`));
          else return;
          waiting.delete(check);
        };
        waiting.add(check);
        check();
      }),
    closed: closed.promise,
  };
}

async function plain(port: number): Promise<Socket> {
  const socket = net.connect({ port, host: "127.0.0.1", noDelay: true });
  await once(socket, "connect");
  return socket;
}

/** Sends a part every `everyMs` until there are none left or the connection closes. */
export function trickle(client: RawClient, parts: Iterable<string | Buffer>, everyMs: number): void {
  const iterator = parts[Symbol.iterator]();
  const timer = setInterval(() => {
    const { value, done } = iterator.next();
    if (done || client.socket.destroyed) clearInterval(timer);
    else client.send(value);
  }, everyMs);
  client.socket.once("close", () => clearInterval(timer));
}

import { writeSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";

export interface ForwarderOptions {
  /** The socket of the proxy. */
  readonly socketFile: string;
  /** The port of 127.0.0.1 at which the work reaches the proxy. */
  readonly proxyPort: number;
  /** The service, where its own address is one of the loopback: the work reaches it at that address. */
  readonly service: { readonly host: string; readonly port: number } | undefined;
}

/**
 * Returns the text of a module that passes connections from the network of isolated work to the runner's proxy. It
 * prints `ready` once it listens, until its process ends. It is made of functions of this file, from which Node has
 * taken the types, so that the sandbox needs no file but Node's.
 */
export function forwarderProgram(options: ForwarderOptions): string {
  const functions = [startForwarder, toProxy, listen, openTunnel, joinSockets].map(String);
  return [
    'import { writeSync } from "node:fs";',
    'import { connect, createServer } from "node:net";',
    ...functions,
    `await startForwarder(${JSON.stringify(options)});`,
  ].join("\n");
}

async function startForwarder({ socketFile, proxyPort, service }: ForwarderOptions): Promise<void> {
  await listen("127.0.0.1", proxyPort, (client) => joinSockets(client, toProxy(socketFile)));
  if (service) {
    const tunnel = (client: Socket) => void openTunnel(client, socketFile, service);
    await listen("127.0.0.1", service.port, tunnel);
    // Where the machine has no IPv6, nobody looks for it there.
    await listen("::1", service.port, tunnel).catch(() => undefined);
  }
  writeSync(1, "ready\n");
}

function toProxy(socketFile: string): Socket {
  return connect({ path: socketFile, allowHalfOpen: true });
}

function listen(host: string, port: number, onConnection: (socket: Socket) => void): Promise<void> {
  const server = createServer({ allowHalfOpen: true }, onConnection);
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => resolve());
  });
}

/** Asks the proxy for the service, and joins the client with what it answers. */
async function openTunnel(
  client: Socket,
  socketFile: string,
  { host, port }: NonNullable<ForwarderOptions["service"]>,
): Promise<void> {
  const proxy = toProxy(socketFile);
  client.on("error", () => proxy.destroy());
  proxy.on("error", () => client.destroy());
  proxy.once("close", () => client.destroy());
  const authority = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  proxy.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  let head = Buffer.alloc(0);
  proxy.on("data", function onData(bytes: Buffer) {
    head = Buffer.concat([head, bytes]);
    const end = head.indexOf("\r\n\r\n");
    if (end < 0) return;
    proxy.pause();
    proxy.off("data", onData);
    if (!head.toString("latin1", 0, end).startsWith("HTTP/1.1 200 ")) {
      client.destroy();
      proxy.destroy();
      return;
    }
    const rest = head.subarray(end + 4);
    if (rest.length > 0) proxy.unshift(rest);
    proxy.removeAllListeners("close");
    joinSockets(client, proxy);
  });
}

/** Passes on what each of two sockets receives to the other, and the end of each direction; a failure ends both. */
export function joinSockets(one: Socket, other: Socket): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on("error", () => to.destroy());
    // An ordinary end of both directions is passed on by pipe, once everything before it has been.
    from.once("close", () => {
      if (!from.readableEnded || !from.writableFinished) to.destroy();
    });
    from.pipe(to);
  }
}

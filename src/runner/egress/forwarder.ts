import { writeSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";

export interface ForwarderOptions {
  /** The socket of the proxy. */
  readonly socketFile: string;
  /** The port on 127.0.0.1 where the work reaches the proxy. */
  readonly proxyPort: number;
  /** The service, if its address is a loopback address. The work reaches it at that address. */
  readonly service: { readonly host: string; readonly port: number } | undefined;
}

/**
 * Returns the source of a module that forwards connections from the network of isolated work to the runner's proxy. The
 * module prints `ready` once it listens and runs until its process is killed. It consists of functions of this file,
 * without their types, so that the sandbox needs no files other than Node's.
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
    // On a machine without IPv6, no program connects there.
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

/** Opens a tunnel to the service through the proxy and joins the client with it. */
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

/** Pipes two sockets into each other, including the end of each direction. A failure of one destroys both. */
export function joinSockets(one: Socket, other: Socket): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on("error", () => to.destroy());
    // Pipe passes on a regular end of both directions after all data.
    from.once("close", () => {
      if (!from.readableEnded || !from.writableFinished) to.destroy();
    });
    from.pipe(to);
  }
}

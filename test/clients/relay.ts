import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** Forwards the bytes of connections to a server, counts them, and can cut all connections. */
export interface Relay {
  /** The URL to use in place of a server's. */
  readonly url: string;
  /** Bytes that clients have sent so far. */
  sentBytes(): number;
  /** Bytes that the server has sent so far. */
  receivedBytes(): number;
  /** Cuts every connection at once; new ones are accepted. */
  cut(): void;
  /**
   * Holds back what the server sends on the connection on which a client sends this text, until the connection is cut.
   * Resolves when the text has come.
   */
  holdBack(text: string): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a relay to a port of 127.0.0.1, by default on a free port. */
export async function startRelay(serverPort: number, port = 0): Promise<Relay> {
  const sockets = new Set<Socket>();
  let [sent, received] = [0, 0];
  let held: { readonly text: string; readonly begin: () => void } | undefined;
  const relay = createServer((caller) => {
    const server = connect(serverPort, "127.0.0.1");
    for (const [socket, other] of [
      [caller, server],
      [server, caller],
    ] as const) {
      sockets.add(socket);
      // A cut connection ends with an error on one side or the other, as it should.
      socket.on("error", () => other.destroy());
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    caller.on("data", (chunk) => {
      sent += chunk.length;
      if (held === undefined || !chunk.includes(held.text)) return;
      server.unpipe(caller);
      held.begin();
      held = undefined;
    });
    server.on("data", (chunk) => (received += chunk.length));
    caller.pipe(server);
    server.pipe(caller);
  });
  relay.listen(port, "127.0.0.1");
  await once(relay, "listening");
  const cut = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  return {
    url: `http://127.0.0.1:${(relay.address() as AddressInfo).port}`,
    sentBytes: () => sent,
    receivedBytes: () => received,
    cut,
    holdBack: (text) => new Promise((resolve) => (held = { text, begin: resolve })),
    async stop() {
      cut();
      await new Promise((resolve) => relay.close(resolve));
    },
  };
}

import type { Socket } from "node:net";

/** The first bytes of an HTTP/2 client (RFC 9113, section 3.4). */
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** `ended`: the client finished sending before the bytes identified the protocol. */
export type Sniffed = "http1" | "http2" | "ended";

/**
 * Reads the first bytes of a connection until they differ from the preface of
 * HTTP/2 or complete it. The bytes are put back before `decided` is called, once,
 * so that a server can take the socket over as if it were untouched.
 */
export function sniffProtocol(socket: Socket, decided: (protocol: Sniffed) => void): void {
  let seen: Buffer = Buffer.alloc(0);

  const decide = (protocol: Sniffed): void => {
    socket.off("readable", onReadable);
    socket.off("end", onEnd);
    decided(protocol);
  };
  const onEnd = (): void => decide("ended");
  const onReadable = (): void => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    seen = Buffer.concat([seen, chunk]);
    const length = Math.min(seen.length, PREFACE.length);
    const matches = seen.compare(PREFACE, 0, length, 0, length) === 0;
    if (matches && length < PREFACE.length) return;
    socket.unshift(seen);
    decide(matches ? "http2" : "http1");
  };

  socket.on("readable", onReadable);
  socket.on("end", onEnd);
}

import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Socket } from "node:net";
import tls from "node:tls";
import type { Connection } from "./connections.ts";
import type { ListenerLimits } from "./listener-limits.ts";

/**
 * Reads the private key and the certificate chain.
 *
 * @throws the system's error when a file cannot be read
 */
export function readTlsFiles(certFile: string, keyFile: string): TlsFiles {
  return { cert: readFileSync(certFile), key: readFileSync(keyFile) };
}

/** The private key and the certificate chain, in PEM. */
export interface TlsFiles {
  readonly key: string | Buffer;
  readonly cert: string | Buffer;
}

/** @throws when key or certificate is not usable, or they do not belong together */
export function checkTlsFiles({ key, cert }: TlsFiles): void {
  tls.createSecureContext({ key, cert });
  // OpenSSL compares only keys of the same type: an RSA certificate with an EC key would fail at each handshake.
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
    throw new Error("key type mismatch: the certificate is for another key");
  }
}

/**
 * Accepts TLS 1.2 and newer, and lets the client choose the protocol; without a
 * choice it is HTTP/1.1.
 *
 * @param accept called for each TCP connection, before its handshake
 * @param secured called when the handshake is done
 * @throws when key or certificate cannot be read, or do not belong together
 */
export function createTlsServer(
  files: TlsFiles,
  limits: ListenerLimits,
  accept: (socket: Socket) => Connection,
  secured: (connection: Connection, protocol: "http1" | "http2") => void,
): tls.Server {
  const server = open(files, limits);
  /**
   * Connections in their handshake, by the client's address and port, which both
   * sockets of one connection share.
   */
  const pending = new Map<string, Connection>();

  server.on("connection", (socket: Socket) => {
    const peer = peerOf(socket);
    if (peer === undefined) {
      socket.destroy();
      return;
    }
    pending.set(peer, accept(socket));
    socket.once("close", () => pending.delete(peer));
  });
  server.on("secureConnection", (socket) => {
    socket.on("error", () => {});
    const peer = peerOf(socket);
    const connection = peer === undefined ? undefined : pending.get(peer);
    if (!connection) {
      socket.destroy();
      return;
    }
    connection.socket = socket;
    connection.isReadable = true;
    secured(connection, socket.alpnProtocol === "h2" ? "http2" : "http1");
  });
  server.on("tlsClientError", (_, socket) => socket.destroy());
  return server;
}

/**
 * Uses other files for the connections that begin from now on.
 *
 * @throws when key and certificate do not belong together; the previous files stay in use
 */
export function useTlsFiles(server: tls.Server, files: TlsFiles): void {
  togetherOrThrow(() => server.setSecureContext(contextOf(files)));
}

/** @throws when key and certificate do not belong together */
function contextOf(files: TlsFiles) {
  checkTlsFiles(files);
  return { ...files, minVersion: "TLSv1.2" } as const;
}

function open(files: TlsFiles, limits: ListenerLimits): tls.Server {
  return togetherOrThrow(() =>
    tls.createServer({
      ...contextOf(files),
      ALPNProtocols: ["h2", "http/1.1"],
      handshakeTimeout: limits.headersTimeoutMs,
      noDelay: true,
    }),
  );
}

function togetherOrThrow<T>(use: () => T): T {
  try {
    return use();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`the TLS key and certificate cannot be used together: ${reason}`, { cause: error });
  }
}

/** Returns the client's address and port; undefined when it has already disconnected. */
function peerOf({ remoteAddress, remotePort }: Socket): string | undefined {
  return remoteAddress === undefined ? undefined : `${remoteAddress} ${remotePort}`;
}

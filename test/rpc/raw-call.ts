import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { buffer } from "node:stream/consumers";
import { Code, ConnectError } from "@connectrpc/connect";
import { errorFromJsonBytes } from "@connectrpc/connect/protocol-connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { trailerParse } from "@connectrpc/connect/protocol-grpc-web";
import type { ReachableServer } from "../harness/server.ts";
import { answerOf, connectHttp2, open } from "../http/http2-client.ts";

/** Calls a unary operation in binary, byte by byte, and returns its error or undefined. */
export type RawCall = (
  server: ReachableServer,
  operation: string,
  body: Uint8Array,
  headers?: Readonly<Record<string, string>>,
) => Promise<ConnectError | undefined>;

/** Frames one message for gRPC: flags, length, bytes. */
export function envelope(message: Uint8Array, flags = 0, length = message.length): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags);
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, message]);
}

/** Connect's unary binary format over HTTP/1.1: no envelope, errors in JSON. */
export const callConnect: RawCall = async (server, operation, body, headers = {}) => {
  const res = await exchange(server, `/api/service.v1.${operation}`, "application/proto", body, headers);
  return res.statusCode === 200
    ? undefined
    : errorFromJsonBytes(
        new Uint8Array(await buffer(res)),
        undefined,
        new ConnectError("the error is no JSON", Code.Unknown),
      );
};

/** gRPC-Web over HTTP/1.1: the trailers are the last envelope. */
export const callGrpcWeb: RawCall = async (server, operation, body, headers = {}) => {
  const type = "application/grpc-web+proto";
  const res = await exchange(server, `/api/service.v1.${operation}`, type, body, headers);
  let rest = await buffer(res);
  while (rest.length >= 5 && rest[0] !== 0x80) rest = rest.subarray(5 + rest.readUInt32BE(1));
  return findTrailerError(trailerParse(new Uint8Array(rest.subarray(5))));
};

/** gRPC over HTTP/2, at the root path. */
export const callGrpc: RawCall = async (server, operation, body, headers = {}) => {
  const session = await connectHttp2(server.port);
  try {
    const stream = open(session, `/service.v1.${operation}`, {
      authorization: `Bearer ${server.token}`,
      "content-type": "application/grpc",
      te: "trailers",
      ...headers,
    });
    stream.end(body);
    const { trailers } = await answerOf(stream);
    // Without the entry whose key is a symbol.
    return findTrailerError(new Headers(Object.entries(trailers) as [string, string][]));
  } finally {
    session.destroy();
  }
};

/** gRPC over HTTP/1.1, whose trailers follow the last chunk. */
export const callGrpcHttp1: RawCall = async (server, operation, body, headers = {}) => {
  const res = await exchange(server, `/service.v1.${operation}`, "application/grpc", body, {
    te: "trailers",
    ...headers,
  });
  await buffer(res);
  return findTrailerError(new Headers(res.trailers as Record<string, string>));
};

async function exchange(
  server: ReachableServer,
  path: string,
  contentType: string,
  body: Uint8Array,
  headers: Readonly<Record<string, string>>,
): Promise<IncomingMessage> {
  const req = request(server.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${server.token}`, "content-type": contentType, ...headers },
  });
  req.end(body);
  const [res] = (await once(req, "response")) as [IncomingMessage];
  return res;
}

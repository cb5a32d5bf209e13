import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import { contentTypeProto, grpcStatusOk, setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { COMPRESSED_FLAG, enveloped } from "../rpc/request/envelope.ts";
import { COMPRESS_MIN_BYTES } from "../rpc/response/compression.ts";
import { grpcMessage } from "./grpc-message.ts";
import type { UnaryForm } from "./unary-form.ts";
import { acceptsGzip, gzip, writeResponse } from "./write-response.ts";

const STATUS_OK = { "grpc-status": grpcStatusOk };
const NO_MESSAGE = new Uint8Array();

/**
 * Binary gRPC over HTTP/2: the message has an envelope, and the trailers contain
 * the status. An error response has no message.
 */
export const GRPC_FORM: UnaryForm = {
  protocolName: "grpc",
  isBinary: true,

  read: ({ requests }, req, call, body) =>
    grpcMessage(req as Http2ServerRequest, requests.limitBytes, call, body),

  success({ serialization }, call, response) {
    return {
      error: undefined,
      header: call.responseHeaderIfAny,
      trailer: call.responseTrailerIfAny,
      body: serialization.getO(true).serialize(response),
      mayCompress: true,
    };
  },

  failure(call, error) {
    return {
      error,
      header: call.responseHeaderIfAny,
      trailer: setTrailerStatus(call.responseTrailer, error),
      body: NO_MESSAGE,
      mayCompress: false,
    };
  },

  async write(req, response, { error, header, trailer, body: message }, output) {
    const res = response as Http2ServerResponse;
    const isGzip = acceptsGzip(req.headers["grpc-accept-encoding"]);
    const setHead = (): void => {
      header?.forEach((value, name) => void res.setHeader(name, value));
      res.setHeader("content-type", contentTypeProto);
      // Set even when the message is too small to be compressed; the flag of the envelope says whether it is.
      if (isGzip) res.setHeader("grpc-encoding", "gzip");
      if (!error) res.addTrailers(STATUS_OK);
      if (trailer) res.addTrailers(Object.fromEntries(trailer));
      // Without a body the response would end with its headers, and lose the trailers.
      if (error) res.writeHead(200);
    };
    const body = error ? NO_MESSAGE : await inEnvelope(message as Uint8Array, isGzip);
    await writeResponse(res, setHead, body, output);
  },
};

function inEnvelope(message: Uint8Array, isGzip: boolean): Uint8Array | Promise<Uint8Array> {
  if (!isGzip || message.length < COMPRESS_MIN_BYTES) return enveloped(message);
  return gzip(message, message.length).then((packed) => enveloped(packed, COMPRESSED_FLAG));
}

import type { Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { mergeNonProtocolHeaders } from "@connectrpc/connect/protocol";
import {
  codeToHttpStatus,
  contentTypeUnaryJson,
  contentTypeUnaryProto,
  errorToJsonBytes,
} from "@connectrpc/connect/protocol-connect";
import type { OutputAccount } from "../rpc/access/call-record.ts";
import type { BodyAccount } from "../rpc/request/arriving-bytes.ts";
import { JSON_OPTIONS } from "../rpc/request/json-options.ts";
import { COMPRESS_MIN_BYTES } from "../rpc/response/compression.ts";
import { responseJson } from "../rpc/response/response-json.ts";
import type { UnaryOperation } from "../rpc/routes.ts";
import { requestBody } from "./request-body.ts";
import type { HttpRequest, HttpResponse, UnaryCall } from "./unary-call.ts";
import type { UnaryForm, WholeResponse } from "./unary-form.ts";
import { bytesOf } from "./write-pieces.ts";
import { acceptsGzip, gzip, writeResponse } from "./write-response.ts";

/** The Connect protocol: the body is the message, and an error is an HTTP status with a JSON body. */
export class ConnectForm implements UnaryForm {
  readonly protocolName = "connect";
  readonly isBinary: boolean;
  readonly lengthBytes: number;

  /** @param lengthBytes length of the request according to its headers */
  constructor(isBinary: boolean, lengthBytes: number) {
    this.isBinary = isBinary;
    this.lengthBytes = lengthBytes;
  }

  read(
    _operation: UnaryOperation,
    req: HttpRequest,
    call: UnaryCall,
    body: BodyAccount,
  ): Uint8Array | Promise<Uint8Array> {
    return requestBody(req, this.lengthBytes, call, body);
  }

  success({ method: { output }, serialization }: UnaryOperation, call: UnaryCall, response: Message) {
    return {
      error: undefined,
      header: call.responseHeaderIfAny,
      trailer: call.responseTrailerIfAny,
      body: this.isBinary ? serialization.getO(true).serialize(response) : responseJson(output, response),
      mayCompress: true,
    };
  }

  /** Errors from outside the catalogue are sent uncompressed, as the protocol layer does. */
  failure(call: UnaryCall, error: ConnectError, isOwn: boolean): WholeResponse {
    mergeNonProtocolHeaders(call.responseHeader, error.metadata);
    return {
      error,
      header: call.responseHeaderIfAny,
      trailer: call.responseTrailerIfAny,
      body: errorToJsonBytes(error, JSON_OPTIONS),
      mayCompress: isOwn,
    };
  }

  async write(
    req: HttpRequest,
    res: HttpResponse,
    response: WholeResponse,
    output: OutputAccount | undefined,
  ): Promise<void> {
    const { error, header, trailer } = response;
    let { body } = response;
    let isPacked = false;
    const accepted = req.headers["accept-encoding"];
    if (accepted !== undefined && response.mayCompress) {
      const plainBytes = bytesOf(body);
      isPacked = plainBytes >= COMPRESS_MIN_BYTES && acceptsGzip(accepted);
      if (isPacked) body = await gzip(body, plainBytes);
    }
    const setHead = (lengthBytes: number): void => {
      header?.forEach((value, name) => void res.setHeader(name, value));
      trailer?.forEach((value, name) => void res.setHeader(`trailer-${name}`, value));
      res.setHeader("content-type", this.isBinary && !error ? contentTypeUnaryProto : contentTypeUnaryJson);
      if (isPacked) res.setHeader("content-encoding", "gzip");
      res.setHeader("content-length", lengthBytes);
      res.statusCode = error ? codeToHttpStatus(error.code) : 200;
    };
    await writeResponse(res, setHead, body, output);
  }
}

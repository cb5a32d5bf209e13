import type { DescMessage, Message, MessageInitShape } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import type { OutputAccount } from "../rpc/access/call-record.ts";
import type { BodyAccount } from "../rpc/request/arriving-bytes.ts";
import type { UnaryOperation } from "../rpc/routes.ts";
import type { HttpRequest, HttpResponse, UnaryCall } from "./unary-call.ts";
import type { Body } from "./write-pieces.ts";

/** A whole response, before it is compressed and framed. */
export interface WholeResponse {
  /** The error that is sent; undefined for a success. */
  readonly error: ConnectError | undefined;
  /** The headers that the operation or an error has set. */
  readonly header: Headers | undefined;
  readonly trailer: Headers | undefined;
  readonly body: Body;
  /** False for a response that is sent uncompressed, however large. */
  readonly mayCompress: boolean;
}

/** The fields of a message, as operations return them. */
export type Init = MessageInitShape<DescMessage>;

/** The protocol of one request: how its message is read, and how its response is written. */
export interface UnaryForm {
  readonly protocolName: "connect" | "grpc";
  readonly isBinary: boolean;
  /**
   * Reads the body of a request.
   *
   * @param body counts the bytes as they arrive
   * @returns the message, immediately when all of it has arrived
   * @throws ConnectError
   */
  read(
    operation: UnaryOperation,
    req: HttpRequest,
    call: UnaryCall,
    body: BodyAccount,
  ): Uint8Array | Promise<Uint8Array>;
  /**
   * @param response of the operation's output
   * @throws when the response cannot be written
   */
  success(operation: UnaryOperation, call: UnaryCall, response: Message): WholeResponse;
  /** @param isOwn true for an error of the catalogue, which was thrown unchanged */
  failure(call: UnaryCall, error: ConnectError, isOwn: boolean): WholeResponse;
  /**
   * Sends a response, compressed if it is large and its client accepts that.
   *
   * @param output counts the body until the client has received it
   */
  write(
    req: HttpRequest,
    res: HttpResponse,
    response: WholeResponse,
    output: OutputAccount | undefined,
  ): Promise<void>;
}

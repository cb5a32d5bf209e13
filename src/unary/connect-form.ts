import { create, type DescMessage, toJson, toJsonString } from "@bufbuild/protobuf";
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
import type { UnaryOperation } from "../rpc/routes.ts";
import { type StoredTexts, storedTexts } from "../services/call/stored-text.ts";
import { requestBody } from "./request-body.ts";
import type { HttpRequest, HttpResponse, UnaryCall } from "./unary-call.ts";
import type { Init, UnaryForm, WholeResponse } from "./unary-form.ts";
import { bytesOf } from "./write-pieces.ts";
import { acceptsGzip, COMPRESS_MIN_BYTES, gzip, writeResponse } from "./write-response.ts";

/** The Connect protocol: the body is the message, and an error is a status of HTTP with a body of JSON. */
export class ConnectForm implements UnaryForm {
  readonly protocolName = "connect";
  readonly isBinary: boolean;
  readonly lengthBytes: number;

  /** @param lengthBytes of the request, by its headers */
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

  success({ method: { output }, serialization }: UnaryOperation, call: UnaryCall, response: object) {
    return {
      error: undefined,
      header: call.responseHeaderIfAny,
      trailer: call.responseTrailerIfAny,
      body: this.isBinary
        ? serialization.getO(true).serialize(create(output, response as Init))
        : responseJson(output, response),
      mayCompress: true,
    };
  }

  /** Errors from outside the catalogue are sent uncompressed, as on the other path. */
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

/**
 * Returns the JSON of a response, in the form of all responses. This is the one
 * place that copies the text of stored resources instead of writing it from
 * messages; both are equal, as the text was written in this form when it was
 * stored.
 *
 * @param response a message of the schema, or one that {@link storedTexts} knows
 */
export function responseJson(schema: DescMessage, response: object): string {
  const stored = storedTexts(response);
  if (!stored) return toJsonString(schema, response as never, JSON_OPTIONS);
  const { field, rest } = stored;
  const parts = partsOf(schema);
  if (!parts.some(({ localName }) => localName === field)) throw new Error(`${schema} has no field ${field}`);
  const json =
    parts.length === 1 ? {} : (toJson(schema, create(schema, rest as Init), JSON_OPTIONS) as JsonObject);
  let text = "";
  for (const { jsonName, localName, opening } of parts) {
    const value = localName === field ? copied(stored) : JSON.stringify(json[jsonName]);
    if (value !== undefined) text += (text === "" ? "{" : ",") + opening + value;
  }
  return `${text}}`;
}

type JsonObject = Readonly<Record<string, unknown>>;

function copied({ texts }: StoredTexts): string {
  return typeof texts === "string" ? texts : `[${texts.join(",")}]`;
}

interface Part {
  readonly localName: string;
  readonly jsonName: string;
  /** The name as JSON text, with its colon. */
  readonly opening: string;
}

const known = new Map<DescMessage, readonly Part[]>();

/** Returns the fields in the order in which toJson writes them. */
function partsOf(schema: DescMessage): readonly Part[] {
  let parts = known.get(schema);
  if (!parts) {
    const sorted = schema.fields.toSorted((one, other) => one.number - other.number);
    parts = sorted.map(({ localName, jsonName }) => ({
      localName,
      jsonName,
      opening: `${JSON.stringify(jsonName)}:`,
    }));
    known.set(schema, parts);
  }
  return parts;
}

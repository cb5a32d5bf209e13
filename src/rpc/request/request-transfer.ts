import { type DescMessage, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { type Code, ConnectError } from "@connectrpc/connect";
import { DomainError } from "../../domain/error.ts";
import { createCheck } from "../check.ts";
import { CONTRACT } from "../contract.ts";
import { fromDomain } from "../error/error.ts";
import { exchangeBytes } from "./byte-fields.ts";
import { JSON_OPTIONS } from "./json-options.ts";
import { lowerCaseIdsOf } from "./lower-case-ids.ts";
import { type RequestReading, requestReading } from "./request-reading.ts";

/** A request that was parsed and checked on another thread, or the error for it. */
export type TransferredRequest =
  | {
      readonly binary: Uint8Array;
      /** The replaced bytes, so that they are not copied; undefined when they are in the message. */
      readonly bytes?: readonly Uint8Array[];
    }
  | { readonly error: TransferredError };

interface TransferredError {
  readonly code: Code;
  readonly message: string;
  readonly details: readonly { readonly type: string; readonly value: Uint8Array }[];
}

/** Parses and checks the body of a request of the named operation. */
export type TransferReader = (operation: string, isBinary: boolean, bytes: Uint8Array) => TransferredRequest;

/** Creates the function with which a thread reads each request for another one. */
export function transferReader(allowUnknownFields: boolean): TransferReader {
  const methods = new Map(
    CONTRACT.flatMap(({ methods, typeName }) =>
      methods.map((method) => [`${typeName}/${method.name}`, method]),
    ),
  );
  const readings = new Map<string, RequestReading>();
  const check = createCheck();
  return (operation, isBinary, bytes) => {
    const method = methods.get(operation);
    if (!method) throw new Error(`there is no ${operation}`);
    const reading = readings.get(operation) ?? requestReading(method, allowUnknownFields);
    readings.set(operation, reading);
    try {
      const message = reading.parse(isBinary, bytes);
      lowerCaseIdsOf(method.input, message);
      check(method.input, message);
      if (isBinary) return { binary: bytes };
      if (!reading.hasLargeBytes) return { binary: toBinary(method.input, message) };
      const taken: Uint8Array[] = [];
      exchangeBytes(method.input, message, (value) => {
        taken.push(value);
        return new Uint8Array();
      });
      return { binary: toBinary(method.input, message), bytes: taken };
    } catch (thrown) {
      if (thrown instanceof DomainError) return { error: transferred(fromDomain(thrown)) };
      if (thrown instanceof ConnectError) return { error: transferred(thrown) };
      throw thrown;
    }
  };
}

function transferred({ code, rawMessage, details }: ConnectError): TransferredError {
  return {
    code,
    message: rawMessage,
    details: details.flatMap((detail) =>
      "desc" in detail
        ? [{ type: detail.desc.typeName, value: toBinary(detail.desc, detail.value as never) }]
        : [],
    ),
  };
}

/**
 * Returns the request that the other thread has read.
 *
 * @throws ConnectError as the other thread did
 */
export function receiveRequest(input: DescMessage, request: TransferredRequest): MessageShape<DescMessage> {
  if ("binary" in request) {
    const message = fromBinary(input, request.binary);
    const [...bytes] = request.bytes ?? [];
    if (bytes.length > 0) exchangeBytes(input, message, () => bytes.shift() as Uint8Array);
    return message;
  }
  const { code, message, details } = request.error;
  const error = new ConnectError(message, code);
  for (const { type, value } of details) {
    const desc = JSON_OPTIONS.registry.getMessage(type);
    if (desc) error.details.push({ desc, value: fromBinary(desc, value) });
  }
  throw error;
}

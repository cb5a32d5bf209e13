import type { ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus } from "@connectrpc/connect/protocol-connect";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";

/** HTTP statuses that differ from that of the error's code: 429 would suggest a retry, which can never succeed. */
const STATUSES: Readonly<Partial<Record<ErrorReason, number>>> = {
  [ErrorReason.BODY_TOO_LARGE]: 413,
  [ErrorReason.TRANSPORT_UNSUPPORTED]: 415,
};

/** Returns the status for an error of a path that is not an operation: there, unimplemented means the media type. */
export function edgeStatus(error: ConnectError): number {
  const [detail] = error.findDetails(ErrorDetailSchema);
  return (detail && STATUSES[detail.reason]) ?? codeToHttpStatus(error.code);
}

import type { ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus } from "@connectrpc/connect/protocol-connect";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";

/** Statuses of HTTP that the code of an error has no place for: 429 says "later", and the same request never fits. */
const STATUSES: Readonly<Partial<Record<ErrorReason, number>>> = {
  [ErrorReason.BODY_TOO_LARGE]: 413,
  [ErrorReason.TRANSPORT_UNSUPPORTED]: 415,
};

/** Returns the status for an error of a path that is no operation, where what is unsupported is the type of a body. */
export function edgeStatus(error: ConnectError): number {
  const [detail] = error.findDetails(ErrorDetailSchema);
  return (detail && STATUSES[detail.reason]) ?? codeToHttpStatus(error.code);
}

import { create } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { AgentWorkService } from "#gen/runner/v1/agent_work_service_pb.js";
import { EnvironmentWorkService } from "#gen/runner/v1/environment_work_service_pb.js";
import { type WorkError, WorkService } from "#gen/runner/v1/work_service_pb.js";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";

/** A client of runner.v1 and of the operation that sends an agent's message to another agent. */
export type WorkClient = Client<typeof WorkService> &
  Client<typeof AgentWorkService> &
  Client<typeof EnvironmentWorkService> &
  Pick<Client<typeof AgentService>, "sendToAgentExecution">;

/** Timeout of one call; the call is retried while its lease is valid. */
export const CALL_MS = 10_000;

/**
 * Opens a binary transport to a server over HTTP with persistent connections. `server` is its URL without `/api`.
 * Nothing is compressed on the same machine, where compression costs more time than it saves.
 *
 * @param ca trusted certificate authorities in PEM; Node's by default
 */
export function createHttpTransport(server: string, ca?: readonly string[]): Transport {
  return createConnectTransport({
    baseUrl: `${server}/api`,
    httpVersion: "1.1",
    useBinaryFormat: true,
    ...(ca && { nodeOptions: { ca: [...ca] } }),
    ...(isLoopback(new URL(server).hostname) && { acceptCompression: [] }),
  });
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127(\.\d+){3}$/.test(host);
}

/** Creates a client that authenticates with a token. */
export function createWorkClient(transport: Transport, token: string): WorkClient {
  const withToken = (header: HeadersInit | undefined) => {
    const headers = new Headers(header);
    headers.set("authorization", `Bearer ${token}`);
    return headers;
  };
  const asRunner: Transport = {
    unary: (method, signal, timeoutMs, header, message, values) =>
      transport.unary(method, signal, timeoutMs, withToken(header), message, values),
    stream: (method, signal, timeoutMs, header, messages, values) =>
      transport.stream(method, signal, timeoutMs, withToken(header), messages, values),
  };
  const { sendToAgentExecution } = createClient(AgentService, asRunner);
  return {
    ...createClient(WorkService, asRunner),
    ...createClient(AgentWorkService, asRunner),
    ...createClient(EnvironmentWorkService, asRunner),
    sendToAgentExecution,
  };
}

/**
 * The meaning of a failed call.
 *
 * - `lost`: the lease belongs to another runner, or the account behind the work
 *   is blocked.
 * - `unauthenticated`: the token is not valid.
 * - `refused`: the same call would fail again.
 * - `transient`: the call may succeed later; the server is unreachable or busy.
 */
export type CallFailure = "lost" | "unauthenticated" | "refused" | "transient";

const REFUSED: readonly Code[] = [
  Code.InvalidArgument,
  Code.FailedPrecondition,
  Code.NotFound,
  Code.AlreadyExists,
  Code.PermissionDenied,
  Code.OutOfRange,
  Code.Unimplemented,
];

export function classifyFailure(error: unknown): CallFailure {
  const { code, reason } = codeAndReasonOf(error);
  // Check the reason, not the code: a broken connection is `aborted` too, and a proxy may refuse with any code.
  if (reason === ErrorReason.LEASE_LOST || reason === ErrorReason.ACCOUNT_BLOCKED) return "lost";
  if (reason === ErrorReason.UNAUTHENTICATED) return "unauthenticated";
  return reason !== undefined && REFUSED.includes(code) ? "refused" : "transient";
}

/**
 * Returns whether a batch call failed for a reason that may not apply to single calls: an older server does not know
 * it, or one entry is invalid.
 */
export function isBatchRefused(error: unknown): boolean {
  const { code, reason } = codeAndReasonOf(error);
  return isUnknownOperation(error) || code === Code.InvalidArgument || reason === ErrorReason.BODY_TOO_LARGE;
}

/** Returns whether the server is too old to know the operation. */
export function isUnknownOperation(error: unknown): boolean {
  const { code, reason } = codeAndReasonOf(error);
  return code === Code.Unimplemented || reason === ErrorReason.OPERATION_UNKNOWN;
}

/** Returns whether a call was refused because the resource is in use. */
export function isInUse(error: unknown): boolean {
  return codeAndReasonOf(error).reason === ErrorReason.IN_USE;
}

const TRANSIENT_REASONS: readonly ErrorReason[] = [
  ErrorReason.UNAVAILABLE,
  ErrorReason.INTERNAL,
  ErrorReason.DEADLINE_EXCEEDED,
];

export function fulfilled<T>(value: T): PromiseFulfilledResult<T> {
  return { status: "fulfilled", value };
}

/** Converts the failure of one entry to the rejection of a single call. */
export function rejected(error: WorkError | undefined): PromiseRejectedResult {
  const reason = error?.detail?.reason ?? ErrorReason.INTERNAL;
  const code = TRANSIENT_REASONS.includes(reason) ? Code.Unavailable : Code.FailedPrecondition;
  const value = create(ErrorDetailSchema, { reason, metadata: error?.detail?.metadata ?? {} });
  const details = [{ desc: ErrorDetailSchema, value }];
  return {
    status: "rejected",
    reason: new ConnectError(error?.message ?? "the server gave no result", code, undefined, details),
  };
}

/** Returns whether the server reported that the resource does not exist. */
export function isNotFound(error: unknown): boolean {
  return codeAndReasonOf(error).reason === ErrorReason.NOT_FOUND;
}

/** Returns why the server withholds a credential; undefined for any other error. */
export function withheldReason(error: unknown): string | undefined {
  const isWithheld = codeAndReasonOf(error).reason === ErrorReason.CREDENTIAL_WITHHELD;
  return isWithheld ? ConnectError.from(error).rawMessage : undefined;
}

/** Returns the code and reason of an error; the reason is undefined if the error did not come from the server. */
function codeAndReasonOf(error: unknown): { readonly code: Code; readonly reason: ErrorReason | undefined } {
  const failure = ConnectError.from(error);
  return { code: failure.code, reason: failure.findDetails(ErrorDetailSchema)[0]?.reason };
}

import { randomUUID } from "node:crypto";
import { type CallOptions, Code, ConnectError } from "@connectrpc/connect";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { foreignText, isForeign, isOtherService, proxyText } from "../../runner/protocol/foreign-server.ts";
import { ExitCode, StartError } from "../start-error.ts";
import { argumentWords } from "../terminal/argument-words.ts";
import type { ServerAccess } from "./server-access.ts";

/** Timeout of one call, in milliseconds: a person is waiting. */
const CALL_MS = 60_000;

/** The header of responses to a token in its last 7 days: its expiry as an RFC 3339 timestamp (docs/sign-in.md). */
const TOKEN_END_HEADER = "token-expires-at";

/** The maximum page size (contract, PaginationRequest.page_size). */
const PAGE = 100;

/**
 * Makes one call as the owner of the token.
 * @param timeoutMs default 60,000
 * @throws StartError with the server's sentence and the exit code for scripts
 */
export async function call<T>(
  access: ServerAccess,
  make: (options: CallOptions) => Promise<T>,
  timeoutMs = CALL_MS,
): Promise<T> {
  try {
    return await make({ ...optionsOf(access), timeoutMs });
  } catch (error) {
    // The headers of an error response are its metadata.
    noteEnd(access, ConnectError.from(error).metadata);
    throw failureOf(error, access);
  }
}

/** Makes one call with an idempotency key, so that a retry does nothing twice. @throws StartError as {@link call} */
export function keyedCall<T>(access: ServerAccess, make: (options: CallOptions) => Promise<T>): Promise<T> {
  const key = randomUUID();
  return call(access, (options) =>
    make({ ...options, headers: { ...options.headers, "idempotency-key": key } }),
  );
}

/** Returns the options of a call as the owner of the token. The response may announce the token's expiry. */
export function optionsOf(access: ServerAccess): CallOptions {
  return {
    headers: { authorization: `Bearer ${access.token}` },
    onHeader: (headers) => noteEnd(access, headers),
  };
}

function noteEnd({ noteTokenEnd }: ServerAccess, headers: Headers): void {
  const endsAt = new Date(headers.get(TOKEN_END_HEADER) ?? "");
  if (!Number.isNaN(endsAt.getTime())) noteTokenEnd?.(endsAt);
}

/** Converts the error of a failed call for the person at the terminal, with its exit code. */
export function failureOf(
  error: unknown,
  { server, tokenRemedy }: Pick<ServerAccess, "server" | "tokenRemedy">,
): StartError {
  const message = messageOf(error, tokenRemedy);
  return new StartError(sentenceOf(error, message, server), { exitCode: exitCodeOf(error), cause: error });
}

function sentenceOf(error: unknown, message: string, server: string): string {
  if (isUnreachable(error))
    return `the server ${server} cannot be reached: ${unreachableText(server, message)}`;
  const { rawMessage } = ConnectError.from(error);
  const proxy = proxyText(error);
  if (proxy !== undefined) return `the server ${server} cannot be reached: ${proxy}`;
  const isUnknown = rawMessage.startsWith("no operation is served under this path");
  if (isUnknown && new URL(server).pathname === "/")
    return `the server ${server} does not know this operation: it is of another release than this program; upgrade the older of the two`;
  if (isUnknown || isOtherService(error)) return foreignText(server);
  return argumentWords(message);
}

/** Returns whether the same call may succeed later: the server is unreachable or busy. */
export function isTemporary(error: unknown): boolean {
  // The command itself found the mistake, such as an unknown id.
  if (error instanceof StartError || isForeign(error)) return false;
  return [Code.Unavailable, Code.DeadlineExceeded, Code.Aborted, Code.Internal, Code.Unknown].includes(
    ConnectError.from(error).code,
  );
}

/**
 * Returns the message of an error for the person at the terminal.
 * @param tokenRemedy the advice about an invalid token
 */
export function messageOf(error: unknown, tokenRemedy = "chartroom login"): string {
  if (!(error instanceof ConnectError)) return (error as Error).message;
  if (error.code === Code.Unauthenticated) return `${unauthenticatedText(error)}: ${tokenRemedy}`;
  if (error.code === Code.NotFound) return `${error.rawMessage}: it does not exist, or you may not see it`;
  return error.rawMessage;
}

/** Returns whether the server refused a call because the resource does not exist. */
export function isNotFound(error: unknown): boolean {
  return error instanceof StartError && ConnectError.from(error.cause).code === Code.NotFound;
}

/** Returns whether the server refused a call because the caller lacks the permission. */
export function isPermissionDenied(error: unknown): boolean {
  return error instanceof StartError && ConnectError.from(error.cause).code === Code.PermissionDenied;
}

/**
 * Reads a list page by page.
 * @param limit the maximum number of elements to return
 * @param readPage reads one page
 */
export async function readPages<T>(
  limit: number,
  readPage: (pagination: { readonly pageSize: number; readonly token: string }) => Promise<{
    readonly elements: readonly T[];
    readonly pagination?: { readonly nextToken: string } | undefined;
  }>,
): Promise<T[]> {
  const all: T[] = [];
  for (let token = ""; ; ) {
    const page = await readPage({ pageSize: Math.min(PAGE, limit - all.length), token });
    all.push(...page.elements);
    token = page.pagination?.nextToken ?? "";
    if (token === "" || all.length >= limit) return all;
  }
}

/**
 * Reads a list to its end.
 * @param makeCall makes the call for one page
 * @param elementsOf returns the elements of a page
 */
export function readAll<P extends { readonly pagination?: { readonly nextToken: string } | undefined }, T>(
  access: ServerAccess,
  makeCall: (
    pagination: { readonly pageSize: number; readonly token: string },
    options: CallOptions,
  ) => Promise<P>,
  elementsOf: (page: P) => readonly T[],
): Promise<T[]> {
  return readPages(Number.POSITIVE_INFINITY, async (pagination) => {
    const page = await call(access, (options) => makeCall(pagination, options));
    return { elements: elementsOf(page), pagination: page.pagination };
  });
}

function unauthenticatedText(error: ConnectError): string {
  const detail = error
    .findDetails(ErrorDetailSchema)
    .find(({ reason }) => reason === ErrorReason.TOKEN_EXPIRED);
  return detail ? `the token ended at ${detail.metadata.expired_at}` : "the token is not valid";
}

/** Returns the reason of a failed connection as text; OpenSSL's own text names its source files. */
export function unreachableText(server: string, message: string): string {
  if (message.includes("wrong version number")) return "it does not speak TLS there: try http://";
  if (message.includes("ECONNREFUSED"))
    return `nothing listens there: start it, or name another by --server (${message})`;
  if (message.includes("ENOTFOUND")) return `its name is unknown (${message})`;
  if (/socket hang up|other side closed|EPIPE/.test(message))
    return server.startsWith("http:")
      ? "it closes the connection: if it speaks TLS there, use https://"
      : "it closes the connection";
  const untrusted = /^(?:self-signed certificate|unable to (?:verify|get)[^;]* certificate)[^;]*/.exec(
    message,
  )?.[0];
  if (untrusted)
    return `its certificate is not trusted: name the file of its authority in NODE_EXTRA_CA_CERTS, or set NODE_USE_SYSTEM_CA=1 if this machine trusts it (${untrusted})`;
  return message;
}

/** Returns whether an error is a connection error, which has a cause, rather than one that the server sent. */
function isUnreachable(error: unknown): boolean {
  return isTemporary(error) && (error as ConnectError).cause !== undefined;
}

function exitCodeOf(error: unknown): ExitCode {
  if (ConnectError.from(error).code === Code.Unauthenticated) return ExitCode.unauthenticated;
  return isTemporary(error) ? ExitCode.unavailable : ExitCode.refused;
}

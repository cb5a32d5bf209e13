import { deadlineMs } from "../rpc/deadline.ts";
import type { UnaryOperation } from "../rpc/routes.ts";
import { ConnectForm } from "./connect-form.ts";
import { GRPC_FORM } from "./grpc-form.ts";
import type { HttpRequest } from "./unary-call.ts";
import type { UnaryForm } from "./unary-form.ts";

/** Content types of Connect after normalization, and whether they are binary. */
const CONNECT: ReadonlyMap<string, boolean> = new Map([
  ["application/json", false],
  ["application/json; charset=utf-8", false],
  ["application/proto", true],
]);

const GRPC: ReadonlySet<string> = new Set(["application/grpc", "application/grpc+proto"]);

/** The properties of a request that the unary path can handle. */
export interface Eligibility {
  readonly form: UnaryForm;
  /** Undefined for a call without a deadline. */
  readonly timeoutMs: number | undefined;
}

/**
 * Returns what the unary path needs to know about a request; undefined for a request
 * that it leaves to the protocol layer: other protocols, compressed bodies, Connect
 * bodies of unknown length, and requests that must be refused because of their
 * headers.
 *
 * @param req a request whose deadline is already capped
 */
export function isEligible(req: HttpRequest, { requests }: UnaryOperation): Eligibility | undefined {
  if (req.method !== "POST") return undefined;
  const { headers } = req;
  const contentType = headers["content-type"] ?? "";
  if (GRPC.has(contentType)) return grpcEligibility(req);
  const isBinary = CONNECT.get(contentType);
  if (isBinary === undefined || !isPlain(headers["content-encoding"])) return undefined;
  if (headers["transfer-encoding"] !== undefined) return undefined;
  const length = headers["content-length"];
  if (length === undefined || !/^\d{1,10}$/.test(length)) return undefined;
  const lengthBytes = Number(length);
  if (lengthBytes > requests.limitBytes) return undefined;
  const version = headers["connect-protocol-version"];
  if (version !== undefined && version !== "1") return undefined;
  return withDeadline(new ConnectForm(isBinary, lengthBytes), req, "connect-timeout-ms");
}

function grpcEligibility(req: HttpRequest): Eligibility | undefined {
  // HTTP/1.1 has a different kind of trailers.
  if (req.httpVersionMajor !== 2 || !isPlain(req.headers["grpc-encoding"])) return undefined;
  return withDeadline(GRPC_FORM, req, "grpc-timeout");
}

function isPlain(encoding: string | string[] | undefined): boolean {
  return encoding === undefined || encoding === "identity";
}

function withDeadline(form: UnaryForm, { headers }: HttpRequest, header: string): Eligibility | undefined {
  if (headers[header] === undefined) return { form, timeoutMs: undefined };
  const timeoutMs = deadlineMs(headers);
  return timeoutMs === undefined ? undefined : { form, timeoutMs };
}

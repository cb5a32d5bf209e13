import { deadlineMs } from "../rpc/deadline.ts";
import type { UnaryOperation } from "../rpc/routes.ts";
import type { HttpRequest } from "./unary-call.ts";

/** Supported content types, in the spelling of nearly all clients, and whether they are binary. */
const BINARY: ReadonlyMap<string, boolean> = new Map([
  ["application/json", false],
  ["application/json; charset=utf-8", false],
  ["application/proto", true],
]);

/** A request that the unary path answers. */
export interface Eligibility {
  readonly isBinary: boolean;
  readonly lengthBytes: number;
  /** Undefined for a call without a deadline. */
  readonly timeoutMs: number | undefined;
}

/**
 * Returns the facts that the unary path needs about a request; undefined for one
 * that it leaves to the protocol layer: other protocols, compressed bodies and
 * bodies of unknown length, and all that must be refused for their headers.
 *
 * @param req its deadline is within the longest that is allowed
 */
export function isEligible(req: HttpRequest, { requests }: UnaryOperation): Eligibility | undefined {
  const { headers } = req;
  const isBinary = BINARY.get(headers["content-type"] ?? "");
  if (isBinary === undefined || req.method !== "POST") return undefined;
  const encoding = headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity") return undefined;
  if (headers["transfer-encoding"] !== undefined) return undefined;
  const length = headers["content-length"];
  if (length === undefined || !/^\d{1,10}$/.test(length)) return undefined;
  const lengthBytes = Number(length);
  if (lengthBytes > requests.limitBytes) return undefined;
  const version = headers["connect-protocol-version"];
  if (version !== undefined && version !== "1") return undefined;
  if (headers["connect-timeout-ms"] === undefined) return { isBinary, lengthBytes, timeoutMs: undefined };
  const timeoutMs = deadlineMs(headers);
  return timeoutMs === undefined ? undefined : { isBinary, lengthBytes, timeoutMs };
}

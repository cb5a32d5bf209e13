import type { Admission } from "../../rpc/access/admission.ts";
import { authError } from "../../rpc/access/authentication.ts";
import type { CallLimits } from "../../rpc/access/call-limits.ts";
import type { CallRecord } from "../../rpc/access/call-record.ts";
import type { HttpRequest, HttpResponse } from "../connection/listener.ts";
import { limitCaller, warnOfTokenEnd } from "./caller-headers.ts";

/** The dependencies of {@link admitBearer}. */
export interface BearerOptions {
  readonly admission: Admission;
  readonly limits: CallLimits;
  /** Returns milliseconds since 1970 UTC. */
  readonly now: () => number;
}

/**
 * Authenticates the sender of a request in a protocol other than that of the operations. Only the bearer token counts.
 * The request is counted against the limits of the caller.
 *
 * @returns the caller
 * @throws ConnectError without a valid token, past a limit, and while the server is shutting down
 */
export async function admitBearer(
  { admission, limits, now }: BearerOptions,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
) {
  const authentication = await admission.identify(req.headers.authorization, record);
  if (authentication.kind !== "known") throw authError(authentication);
  warnOfTokenEnd(res, record, now());
  const limited = limitCaller(limits, res, record);
  if (limited) throw limited;
  admission.requireOpen();
  return authentication.caller;
}

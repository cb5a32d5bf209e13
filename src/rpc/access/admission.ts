import { type ConnectError, type ContextValues, createContextValues } from "@connectrpc/connect";
import type { AuthenticatedCaller } from "../../services/call/authenticated-caller.ts";
import { callerKey, traceKey } from "../../services/call/call.ts";
import type { Readiness } from "../health.ts";
import type { Route } from "../routes.ts";
import { type Authentication, authError } from "./authentication.ts";
import { authErrorKey, shuttingDown } from "./authorization.ts";
import { type CallRecord, callRecordKey } from "./call-record.ts";

/** The checks that every call passes before its operation, over a socket, as a delivery or from this process. */
export interface Admission {
  /** Authenticates the sender of a request, and names a known one in the record of the call. */
  identify(
    authorization: string | undefined,
    record: CallRecord,
    session?: string,
  ): Promise<AuthenticatedCaller>;
  /**
   * Authenticates the caller of an operation, unless it needs no token.
   *
   * @param route undefined for a path that names no operation
   * @param session the value of the session's cookie, where it counts
   * @returns the error with which the call must end, which its protocol sends
   */
  admit(
    route: Route | undefined,
    authorization: string | undefined,
    record: CallRecord,
    session?: string,
  ): Promise<ConnectError | undefined>;
  /** @throws ConnectError UNAVAILABLE once the server shuts down */
  requireOpen(): void;
  /**
   * Returns the context values of a call, for the interceptors and the operation. A call that comes
   * after the server began to shut down ends with an error, unless the operation needs no token.
   *
   * @param rejected the error with which the call must end in any case
   */
  contextValues(route: Route, record: CallRecord, rejected: ConnectError | undefined): ContextValues;
  /** Aborted when the server begins to shut down. */
  readonly draining: AbortSignal;
}

export function createAdmission(
  authenticate: Authentication,
  { draining }: Pick<Readiness, "draining">,
): Admission {
  const identify: Admission["identify"] = async (authorization, record, session) => {
    const authentication = await authenticate(authorization, session);
    if (authentication.kind === "known") record.caller = authentication.caller;
    return authentication;
  };
  return {
    identify,
    async admit(route, authorization, record, session) {
      if (route?.requiresToken === false) return undefined;
      return authError(await identify(authorization, record, session));
    },
    requireOpen() {
      if (draining.aborted) throw shuttingDown();
    },
    contextValues(route, record, rejected) {
      const values = createContextValues().set(callRecordKey, record).set(callerKey, record.caller);
      if (record.trace) values.set(traceKey, record.trace);
      const error = rejected ?? (route.requiresToken && draining.aborted ? shuttingDown() : undefined);
      if (error) values.set(authErrorKey, error);
      return values;
    },
    draining,
  };
}

import { createLog } from "../../src/log.ts";

/** The server's own log, pino with lines batched per turn of the event loop, so that logging costs all peers the same. */
const log = createLog("info");

/** The fields of a call in the access log. */
export interface Call {
  readonly requestId: string;
  readonly operation: string;
  readonly code: string;
  readonly status: number;
  /** From performance.now(). */
  readonly startedAt: number;
  readonly caller:
    | { readonly organizationId: string; readonly id: string; readonly tokenId: string }
    | undefined;
}

export function logCall({ requestId, operation, code, status, startedAt, caller }: Call): void {
  const line = {
    requestId,
    operation,
    code,
    status,
    durationMs: Math.round((performance.now() - startedAt) * 100) / 100,
    ...(caller && { organization: caller.organizationId, caller: caller.id, token: caller.tokenId }),
  };
  log.info(line, "call");
}

import { createLog } from "../../src/log.ts";

/** The log of a peer is the server's own, pino's lines gathered for each turn: nobody gains or loses by it. */
const log = createLog("info");

/** What the access log says of one call. */
export interface Call {
  readonly requestId: string;
  readonly operation: string;
  readonly code: string;
  readonly status: number;
  /** Of performance.now(). */
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

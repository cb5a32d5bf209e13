import type { Interceptor } from "@connectrpc/connect";
import type { RevocationMonitor } from "../services/call/revocation-monitor.ts";
import type { StreamSlots } from "../services/call/stream-slots.ts";
import { revokeStreams } from "./access/revoked-streams.ts";
import { type Check, checkRequests } from "./check.ts";
import type { ReportFault } from "./error/error.ts";
import { errorInterceptor } from "./error/error-interceptor.ts";
import { idempotencyKeys } from "./idempotency-key.ts";
import { lowerCaseIds } from "./request/lower-case-ids.ts";
import { queryPagination } from "./request/query-pagination.ts";
import { requireKnownFields } from "./request/unknown-fields.ts";
import { outputLimit } from "./response/output-limit.ts";
import { trackPositions } from "./stream/stream-positions.ts";

export interface InterceptorOptions {
  readonly report: ReportFault;
  /** Aborted when the server begins to shut down. */
  readonly draining: AbortSignal;
  readonly revocationMonitor: RevocationMonitor;
  readonly streamSlots: StreamSlots;
  readonly check: Check;
  readonly beginRequestMacs: Parameters<typeof idempotencyKeys>[0];
}

/**
 * Creates the interceptors of every operation, outermost first. The error interceptor is first, so that
 * errors of all others are reported too. Ids are converted to lower case before they are validated. The
 * idempotency key is innermost, since it must hash every request in its final form.
 */
export function createInterceptors(options: InterceptorOptions): readonly Interceptor[] {
  return [
    errorInterceptor(options.report),
    outputLimit(options.draining),
    revokeStreams(options.revocationMonitor, options.streamSlots),
    trackPositions,
    queryPagination,
    requireKnownFields,
    lowerCaseIds,
    checkRequests(options.check),
    idempotencyKeys(options.beginRequestMacs),
  ];
}

import type {
  GetAuditLogRequest,
  ListAuditLogsRequest,
  ListAuditLogsRequest_Filter,
} from "#gen/service/v1/event_service_pb.js";
import { notFound } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { auditLogDirection } from "../../domain/record/audit-log-order.ts";
import { roundedUpMs } from "../../domain/timestamp-range.ts";
import {
  type AuditLogFilter,
  findAuditLog,
  findAuditLogPage,
  toAuditLogEntry,
} from "../../store/record/audit-log.ts";
import { storedTypes } from "../../store/resource-type.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { type ListDependencies, listPage } from "../call/page.ts";

/**
 * Returns one page of the caller's audit trail.
 *
 * @throws DomainError VALUE_UNUSABLE for a field that the trail cannot be sorted by; PAGE_TOKEN_INVALID
 */
export async function listAuditLogs(deps: ListDependencies, caller: Caller, req: ListAuditLogsRequest) {
  const filter = filterOf(req.filter);
  const direction = auditLogDirection(req.sort);
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListAuditLogs",
    parts: [filter, direction],
    pagination: req.pagination,
    find: (db, after, limit) => findAuditLogPage(db, caller, filter, { direction, after: after?.key }, limit),
  });
  return { ...page, entries: rows };
}

/**
 * Returns one entry of the caller's audit trail.
 *
 * @throws DomainError NOT_FOUND
 */
export async function getAuditLog(
  { store }: Pick<ServiceDependencies, "store">,
  caller: Caller,
  { auditLogEntryId }: GetAuditLogRequest,
) {
  const row = await findAuditLog(store.reader, caller, auditLogEntryId);
  if (!row) throw notFound("audit log entry");
  return { entry: toAuditLogEntry(row) };
}

function filterOf(filter: ListAuditLogsRequest_Filter | undefined): AuditLogFilter {
  const subjectTypes = filter?.subjectTypes ?? [];
  return {
    actorIds: filter?.actorIds ?? [],
    actorPrincipals: filter?.actorPrincipals ?? [],
    subjectTypes: subjectTypes.length > 0 ? storedTypes(subjectTypes) : undefined,
    subjectIds: filter?.subjectIds ?? [],
    actions: filter?.actions ?? [],
    startMs: filter?.from && roundedUpMs(filter.from),
    endMs: filter?.to && roundedUpMs(filter.to),
  };
}

import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { ListAuditLogsRequest, ListAuditLogsRequest_Filter } from "#gen/service/v1/event_service_pb.js";
import type { Caller } from "../domain/caller.ts";
import { pageSize, queryText } from "../domain/page.ts";
import { type AuditLogFilter, listAuditLogs, toAuditLogEntry } from "../store/audit-log.ts";
import { storedTypes } from "../store/resource-type.ts";
import type { ServiceDependencies } from "./dependencies.ts";
import { onePage } from "./page.ts";

/** One page of the caller's audit trail, newest first. */
export async function answerAuditLogs(
  { store, pageTokens }: Pick<ServiceDependencies, "store" | "pageTokens">,
  caller: Caller,
  req: ListAuditLogsRequest,
) {
  const filter = filterOf(req.filter);
  const query = queryText("ListAuditLogs", caller.organizationId, filter);
  const before = pageTokens.read(query, req.pagination?.token ?? "")?.key;
  const size = pageSize(req.pagination);
  const found = await listAuditLogs(store.reader, caller, filter, before, size + 1);
  const positioned = found.map((row) => ({ row, position: { key: row.sequence, id: row.id } }));
  const { rows, pagination } = onePage(pageTokens, query, positioned, size);
  return { pagination, entries: rows.map(({ row }) => toAuditLogEntry(row)) };
}

function filterOf(filter: ListAuditLogsRequest_Filter | undefined): AuditLogFilter {
  const subjectTypes = filter?.subjectTypes ?? [];
  return {
    actorIds: filter?.actorIds ?? [],
    actorPrincipals: filter?.actorPrincipals ?? [],
    subjectTypes: subjectTypes.length > 0 ? storedTypes(subjectTypes) : undefined,
    subjectIds: filter?.subjectIds ?? [],
    operations: filter?.operations ?? [],
    startMs: wholeMs(filter?.startTime),
    endMs: wholeMs(filter?.endTime),
  };
}

const NANOS_PER_MS = 1_000_000;

/** The first whole millisecond that is not before the time: rows happened at whole ones. */
function wholeMs(time: Timestamp | undefined): number | undefined {
  return time && Number(time.seconds) * 1000 + Math.ceil(time.nanos / NANOS_PER_MS);
}

import { sql } from "kysely";
import type { AuditTarget } from "../../domain/record/audit-export.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope } from "../store.ts";

/** Rows that a target of the export of the audit trail has not confirmed yet. */
export interface AuditLag {
  readonly target: AuditTarget;
  /** Rows of all chains. */
  readonly rows: number;
  /** When the oldest of them was written, in milliseconds since 1970 UTC; undefined without any. */
  readonly oldestAt: number | undefined;
}

/** Number of the last row of a chain that is done: confirmed, or removed before the target had received any. */
const DONE = sql<number>`case when coalesce(audit_anchor.sequence, 0) > coalesce(audit_export.sequence, 0)
  then audit_anchor.sequence else coalesce(audit_export.sequence, 0) end`;

/** Returns what a target has not confirmed of an organization's trail. */
export async function findOwnAuditLag(db: Reader, scope: Scope, target: AuditTarget): Promise<AuditLag> {
  const own = await organizationLags(db, target)
    .where("organization.id", "=", scope.organizationId)
    .executeTakeFirst();
  const oldestAt = own?.oldestAt ?? undefined;
  return { target, rows: Number(own?.rows ?? 0), oldestAt: oldestAt && Number(oldestAt) };
}

/** Returns what a target has not confirmed. It covers the installation, so it takes no scope. */
export async function findAuditLag(db: Reader, target: AuditTarget): Promise<AuditLag> {
  const organizations = await organizationLags(db, target).executeTakeFirst();
  const own = await findInstallationLag(db, target);
  const times = [organizations?.oldestAt ?? undefined, own.oldestAt].flatMap((at) =>
    at === undefined ? [] : [Number(at)],
  );
  return {
    target,
    rows: Number(organizations?.rows ?? 0) + own.rows,
    oldestAt: times.length === 0 ? undefined : Math.min(...times),
  };
}

function organizationLags(db: Reader, target: AuditTarget) {
  return builderOf(db)
    .selectFrom("organization")
    .leftJoin("audit_export", (join) =>
      join
        .onRef("audit_export.organization_id", "=", "organization.id")
        .on("audit_export.target", "=", target),
    )
    .leftJoin("audit_anchor", "audit_anchor.organization_id", "organization.id")
    .leftJoin("audit_log", (join) =>
      join
        .onRef("audit_log.organization_id", "=", "organization.id")
        .on((eb) => eb("audit_log.sequence", "=", eb(DONE, "+", eb.lit(1)))),
    )
    .select((eb) => [
      eb.fn.sum<number | null>(eb("organization.sequence", "-", DONE)).as("rows"),
      eb.fn.min<number | null>("audit_log.at").as("oldestAt"),
    ])
    .where((eb) => eb("organization.sequence", ">", DONE));
}

async function findInstallationLag(db: Reader, target: AuditTarget): Promise<Omit<AuditLag, "target">> {
  const [installation] = await builderOf(db).selectFrom("installation").select("sequence").execute();
  const [position] = await builderOf(db)
    .selectFrom("audit_export")
    .select("sequence")
    .where("target", "=", target)
    .where("organization_id", "=", "")
    .execute();
  const confirmed = position?.sequence ?? 0;
  const rows = (installation?.sequence ?? 0) - confirmed;
  if (rows <= 0) return { rows: 0, oldestAt: undefined };
  const [oldest] = await builderOf(db)
    .selectFrom("audit_log")
    .select("at")
    .where("organization_id", "is", null)
    .where("sequence", "=", confirmed + 1)
    .execute();
  return { rows, oldestAt: oldest?.at };
}

import type { AuditSink, AuditTarget } from "../domain/record/audit-export.ts";
import { AuditCollector } from "./audit-collector.ts";
import { AuditFile } from "./audit-file.ts";

/** The settings of the continuous export of the audit trail. */
export interface AuditExportSettings {
  /** The file; empty for none. */
  readonly auditFile: string;
  /** Size in MiB at which a new file begins. */
  readonly auditFileSize: number;
  /** Number of full files that are kept; 0 for all. */
  readonly auditFileCount: number;
  /** URL of a collector that accepts OTLP over HTTP, without its path; empty for none. */
  readonly auditOtlpEndpoint: string;
  /** Headers for that collector. */
  readonly otlpHeaders?: Readonly<Record<string, string>>;
}

/** Returns the targets that the settings name. */
export function auditTargetsOf({
  auditFile,
  auditOtlpEndpoint,
}: Pick<AuditExportSettings, "auditFile" | "auditOtlpEndpoint">): AuditTarget[] {
  return [...(auditFile ? ["file" as const] : []), ...(auditOtlpEndpoint ? ["otlp" as const] : [])];
}

/** Creates the sinks for those targets; nothing is opened yet. */
export function createAuditSinks(
  settings: AuditExportSettings,
  options: { readonly now: () => number; readonly draining: AbortSignal; readonly isShared: boolean },
): AuditSink[] {
  const { auditFile: path, auditFileSize, auditFileCount: count, auditOtlpEndpoint } = settings;
  return auditTargetsOf(settings).map((target) =>
    target === "file"
      ? new AuditFile({ path, bytes: auditFileSize * 1024 * 1024, count }, options)
      : new AuditCollector(auditOtlpEndpoint, { ...options, headers: settings.otlpHeaders ?? {} }),
  );
}

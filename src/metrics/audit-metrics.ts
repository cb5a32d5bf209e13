import type { AuditTarget } from "../domain/record/audit-export.ts";
import { findAuditLag, findOwnAuditLag } from "../store/record/audit-lag.ts";
import type { Scope } from "../store/store.ts";
import type { Metric } from "./metric.ts";
import { METRICS_SCOPE, type MeasuredStore } from "./store-metrics.ts";

/**
 * Returns a metric source for the part of the audit trail that the export targets have not confirmed; nothing without
 * a target.
 * @param scope the organization whose trail it is; absent for all trails
 */
export function auditMetrics(
  store: Pick<MeasuredStore, "searcher">,
  targets: readonly AuditTarget[],
  now: () => number,
  scope?: Scope,
): () => Promise<readonly Metric[]> {
  return async () => {
    if (targets.length === 0) return [];
    const at = now();
    const lags = await Promise.all(
      targets.map((target) =>
        scope
          ? findOwnAuditLag(store.searcher(METRICS_SCOPE), scope, target)
          : findAuditLag(store.searcher(METRICS_SCOPE), target),
      ),
    );
    return [
      {
        name: "chartroom.audit.export.pending",
        help: "Rows of the audit trail that a target of its export has not confirmed.",
        unit: "{row}",
        kind: "gauge",
        values: lags.map(({ target, rows }) => [{ "chartroom.audit.target": target }, rows]),
      },
      {
        name: "chartroom.audit.export.oldest.age",
        help: "Age of the oldest row that a target has not confirmed; 0 while it has them all.",
        unit: "s",
        kind: "gauge",
        values: lags.map(({ target, oldestAt }) => [
          { "chartroom.audit.target": target },
          oldestAt === undefined ? 0 : Math.max(0, at - oldestAt) / 1000,
        ]),
      },
    ];
  };
}

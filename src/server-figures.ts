import { auditDelay } from "./domain/record/audit-delay.ts";
import type { AuditTarget } from "./domain/record/audit-export.ts";
import type { Figure, ServerHealth } from "./domain/server-health.ts";
import { CALL_SCOPES } from "./domain/traffic/too-many-calls.ts";
import type { Warning } from "./machine-checks.ts";
import { auditMetrics } from "./metrics/audit-metrics.ts";
import { type CallMeasures, limitMetrics, serverMetrics } from "./metrics/call-measures.ts";
import { figuresOf } from "./metrics/figures.ts";
import type { MetricSource } from "./metrics/metric.ts";
import {
  METRICS_SCOPE,
  type MeasuredStore,
  organizationMetrics,
  sizeMetrics,
  writeMetrics,
} from "./metrics/store-metrics.ts";
import type { CallLimits } from "./rpc/access/call-limits.ts";
import { checksOf, type Readiness } from "./rpc/health.ts";
import type { StreamSlots } from "./services/call/stream-slots.ts";
import { findAuditLag } from "./store/record/audit-lag.ts";
import type { Scope } from "./store/store.ts";

/** The parts of a server that count what it does. */
export interface CountingParts {
  readonly calls: CallMeasures;
  readonly streamSlots: Pick<StreamSlots, "taken">;
  readonly readiness: Pick<Readiness, "problems">;
  readonly limits: Pick<CallLimits, "refused">;
  /** Counts connections that were refused. */
  readonly listener: { readonly refused: number };
}

/** Returns the sources of the metrics of a server's calls, streams, checks and limits. */
export const countedSources = ({
  calls,
  streamSlots,
  readiness,
  limits,
  listener,
}: CountingParts): readonly MetricSource[] => [
  calls.metrics,
  () => serverMetrics(streamSlots.taken(), checksOf(readiness)),
  () =>
    limitMetrics([
      ...CALL_SCOPES.map((scope) => [scope, limits.refused.get(scope) ?? 0] as const),
      ["connections", listener.refused],
    ]),
];

/** Returns a function that returns warnings about audit export targets that are behind. */
export const auditWarnings =
  (
    store: Pick<MeasuredStore, "searcher">,
    targets: readonly AuditTarget[],
    now: () => number,
  ): (() => Promise<readonly Warning[]>) =>
  async () => {
    const db = store.searcher(METRICS_SCOPE);
    const lags = await Promise.all(targets.map((target) => findAuditLag(db, target)));
    return lags.flatMap((lag) => {
      const reason = auditDelay(lag, now());
      return reason === undefined ? [] : [{ check: "audit export", reason } as const];
    });
  };

/** The sources of a server's health report. */
export interface HealthSources {
  readonly store: MeasuredStore;
  readonly readiness: Pick<Readiness, "problems">;
  readonly version: string;
  /** The targets of the audit export. */
  readonly auditTargets: readonly AuditTarget[];
  /** Returns milliseconds since 1970 UTC. */
  readonly now: () => number;
  /** Metrics in addition to those of the store; when a source fails, only its own metrics are missing. */
  readonly sources: readonly MetricSource[];
  /** Metrics of the process, if available. */
  readonly figures?: readonly MetricSource[];
}

/** Creates the health report of a server that has just started, with the figures of an organization. */
export function createServerHealth({
  store,
  readiness,
  version,
  auditTargets,
  now,
  sources,
  figures = [],
}: HealthSources): (scope: Scope) => Promise<ServerHealth> {
  const startedAt = now();
  const all: readonly MetricSource[] = [
    ...sources,
    ...figures,
    () => writeMetrics(store),
    () => sizeMetrics(store),
  ];
  return async (scope) => {
    const reasons = new Map(readiness.problems().map(({ check, reason }) => [check, reason]));
    const [organization, exported, ...server] = await Promise.all([
      read(() => organizationMetrics(store, scope, now())),
      read(auditMetrics(store, auditTargets, now, scope)),
      ...all.map(read),
    ]);
    return {
      version,
      startedAt,
      checks: checksOf(readiness).map(([name]) => ({ name, reason: reasons.get(name) ?? "" })),
      server: server.flat().filter(isOfServer),
      organization: [...organization, ...exported],
    };
  };
}

const read = async (source: MetricSource): Promise<Figure[]> => {
  try {
    return figuresOf(await source());
  } catch {
    return [];
  }
};

/** Metrics that are left out: calls, work and records of all organizations, and checks, which are shown separately. */
const LEFT_OUT =
  /^rpc_server_|^http_server_request_|_ended_total$|^chartroom_(trigger_events|event_deliveries_total|isolation_refusals|audit_export)|^chartroom_(ready|check_well)$/;

const isOfServer = ({ name }: Figure): boolean => !LEFT_OUT.test(name);

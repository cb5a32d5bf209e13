import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { AgentExecution_Phase } from "#gen/service/v1/agent_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { EventSubscriptionState } from "#gen/service/v1/event_subscription_pb.js";
import { WorkflowExecutionPhase } from "#gen/service/v1/workflow_pb.js";
import type { StoreSize } from "../domain/measures.ts";
import {
  countInstallation,
  countOrganization,
  type InstallationCounts,
} from "../store/access/installation-counts.ts";
import type { Scope, Store } from "../store/store.ts";
import type { Metric } from "./metric.ts";
import { outcomeMetrics } from "./outcome-metrics.ts";

/** The parts of a store that metrics read. */
export type MeasuredStore = Pick<Store, "measures" | "searcher">;

/** How long before its end a token counts as about to expire. */
const NEAR_END_MS = 7 * 24 * 3_600_000;

/** A collection within this time reuses the results of the previous one. */
const FRESH_MS = 10_000;

/** Searches take turns by organization; those for metrics have their own turn. */
export const METRICS_SCOPE = { organizationId: "metrics" };

/** @returns the metrics of what the process has written to the store. */
export const writeMetrics = ({ measures }: MeasuredStore): readonly Metric[] => [
  {
    name: "chartroom.commit.duration",
    help: "Time from the begin of a group of writes to its commit.",
    unit: "s",
    kind: "histogram",
    values: [[{}, measures.commitSeconds]],
  },
  {
    name: "chartroom.commit.writes",
    help: "Writes that share a commit.",
    unit: "{write}",
    kind: "histogram",
    values: [[{}, measures.commitWrites]],
  },
  {
    name: "chartroom.lock.wait.duration",
    help: "Time for which a group of writes waited for its locks; nothing on SQLite, which has one writer.",
    unit: "s",
    kind: "histogram",
    values: [[{}, measures.lockWaitSeconds]],
  },
  ...outcomeMetrics(measures),
];

/**
 * Returns a metric source for the contents of an installation, which are the same on all its servers. It queries like
 * searches do, so that no call waits for it.
 *
 * @param now milliseconds since 1970 UTC
 */
export function installationMetrics(
  store: MeasuredStore,
  now: () => number,
): () => Promise<readonly Metric[]> {
  let known: { readonly at: number; readonly metrics: Promise<readonly Metric[]> } | undefined;
  const read = async () => {
    const at = now();
    const [counts, size] = await Promise.all([
      countInstallation(store.searcher(METRICS_SCOPE), { now: at, until: at + NEAR_END_MS }),
      store.measures.size(),
    ]);
    return [...metricsOf(counts, at), sizeMetric(size)];
  };
  return () => {
    if (!known || now() - known.at >= FRESH_MS) {
      const reading = { at: now(), metrics: read() };
      known = reading;
      // The next call tries again; this caller gets the error.
      reading.metrics.catch(() => {
        if (known === reading) known = undefined;
      });
    }
    return known.metrics;
  };
}

/** Returns the metrics of one organization's contents, like {@link installationMetrics} for all. */
export async function organizationMetrics(
  store: Pick<MeasuredStore, "searcher">,
  scope: Scope,
  now: number,
): Promise<readonly Metric[]> {
  return metricsOf(
    await countOrganization(store.searcher(scope), scope, { now, until: now + NEAR_END_MS }),
    now,
  );
}

/** Returns the metric of the size of a store. */
export async function sizeMetrics({ measures }: MeasuredStore): Promise<readonly Metric[]> {
  return [sizeMetric(await measures.size())];
}

function metricsOf(counts: InstallationCounts, now: number): Metric[] {
  const { work, runners, eventDeliveries } = counts;
  const gauge = (name: string, help: string, unit: string, values: Metric["values"]) =>
    ({ name, help, unit, kind: "gauge", values }) as Metric;
  const waiting = work.filter(({ isLeased }) => !isLeased);
  return [
    gauge(
      "chartroom.work.items",
      "Work of runners, by kind and whether a runner holds it.",
      "{item}",
      work.map(({ of, isLeased, count }) => [
        {
          "chartroom.work.kind": nameOf(WorkKind, of),
          "chartroom.work.state": isLeased ? "leased" : "queued",
        },
        count,
      ]),
    ),
    gauge(
      "chartroom.work.oldest.age",
      "Age of the oldest work of each kind that waits for a runner.",
      "s",
      waiting.map(({ of, oldestId }) => [
        { "chartroom.work.kind": nameOf(WorkKind, of) },
        ageOfId(oldestId, now),
      ]),
    ),
    gauge(
      "chartroom.executions.open",
      "Workflow executions that are not over, by phase.",
      "{execution}",
      byPhase(counts.workflowExecutions, WorkflowExecutionPhase),
    ),
    gauge(
      "chartroom.agent_executions.open",
      "Agent executions that are not over, by phase.",
      "{execution}",
      byPhase(counts.agentExecutions, AgentExecution_Phase),
    ),
    gauge(
      "chartroom.environments",
      "Environments, by phase.",
      "{environment}",
      byPhase(counts.environments, EnvironmentPhase),
    ),
    gauge("chartroom.approvals.open", "Approvals that wait for a decision.", "{approval}", [
      [{}, counts.openApprovals],
    ]),
    gauge(
      "chartroom.event.subscriptions",
      "Subscriptions to events, by whether they are sent to.",
      "{subscription}",
      [
        EventSubscriptionState.ACTIVE,
        EventSubscriptionState.PAUSED,
        EventSubscriptionState.PAUSED_BY_SERVER,
      ].map((state) => [
        { "chartroom.subscription.state": nameOf(EventSubscriptionState, state) },
        counts.eventSubscriptions.find(({ of }) => of === state)?.count ?? 0,
      ]),
    ),
    gauge(
      "chartroom.event.deliveries.pending",
      "Events in ledgers that are to be sent, by whether their subscription is paused.",
      "{event}",
      [
        [{ "chartroom.subscription.state": "active" }, eventDeliveries.waiting],
        [{ "chartroom.subscription.state": "paused" }, eventDeliveries.paused],
      ],
    ),
    gauge(
      "chartroom.event.deliveries.oldest.age",
      "Age of the oldest event that is to be sent to a subscription that is not paused; 0 while none waits.",
      "s",
      [[{}, eventDeliveries.oldestId === undefined ? 0 : ageOfId(eventDeliveries.oldestId, now)]],
    ),
    gauge("chartroom.runners", "Runners, by whether they are connected, and get work.", "{runner}", [
      [{ "chartroom.runner.state": "connected" }, runners.connected],
      [{ "chartroom.runner.state": "paused" }, runners.paused],
      [{ "chartroom.runner.state": "disconnected" }, runners.disconnected],
    ]),
    gauge(
      "chartroom.runner.silence.max",
      "Longest time for which a connected runner has shown no sign of life.",
      "s",
      runners.oldestSign === undefined ? [] : [[{}, Math.max(0, (now - runners.oldestSign) / 1000)]],
    ),
    gauge(
      "chartroom.tokens.ending",
      "Tokens of people and service accounts that end within seven days.",
      "{token}",
      [[{}, counts.endingTokens]],
    ),
  ];
}

function sizeMetric({ data, log }: StoreSize): Metric {
  return {
    name: "chartroom.database.size",
    help: "Size of the database, and of the log of changes that are not in its file yet (SQLite).",
    unit: "By",
    kind: "gauge",
    values: [
      [{ "chartroom.database.part": "data" }, data],
      ...(log === undefined ? [] : [[{ "chartroom.database.part": "log" }, log] as const]),
    ],
  };
}

function byPhase(
  counts: InstallationCounts["environments"],
  phases: Readonly<Record<number, string>>,
): readonly (readonly [Readonly<Record<string, string>>, number])[] {
  return counts.map(({ of, count }) => [{ "chartroom.phase": nameOf(phases, of) }, count]);
}

function nameOf(values: Readonly<Record<number, string>>, number: number): string {
  return values[number]?.toLowerCase() ?? "unknown";
}

/** Returns the time since a UUID v7 was made, in seconds. @param now milliseconds since 1970 UTC */
function ageOfId(id: string, now: number): number {
  const madeAt = Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16);
  return Math.max(0, (now - madeAt) / 1000);
}

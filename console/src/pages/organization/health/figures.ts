import type { GetServerHealthResponse_Figure as Figure } from "#gen/service/v1/organization_service_pb.js";
import { durationText } from "../../../parts/Time.tsx";

/** The label of a figure by the name of its metric, and how values of several labels are combined. */
type Wording = readonly [name: string, label: string, of: "sum" | "max"];

/** The organization's queued and running work, in the order shown. */
export const WORK: readonly Wording[] = [
  ["chartroom_runners", "Runners", "sum"],
  ["chartroom_runner_silence_max", "Longest silence of a connected runner", "max"],
  ["chartroom_work_items", "Work for runners", "sum"],
  ["chartroom_work_oldest_age", "Oldest work that waits", "max"],
  ["chartroom_executions_open", "Open workflow executions", "sum"],
  ["chartroom_agent_executions_open", "Open agent runs", "sum"],
  ["chartroom_approvals_open", "Open approvals", "sum"],
  ["chartroom_event_subscriptions", "Webhooks", "sum"],
  ["chartroom_event_deliveries_pending", "Events waiting for webhooks", "sum"],
  ["chartroom_event_deliveries_oldest_age", "Oldest event waiting for a webhook", "max"],
  ["chartroom_environments", "Environments", "sum"],
  ["chartroom_tokens_ending", "Tokens expiring within 7 days", "sum"],
];

/** Figures that show whether the server is slow or full. */
export const SERVER: readonly Wording[] = [
  ["chartroom_commit_duration_p50", "Median commit time", "max"],
  ["chartroom_commit_duration_p99", "Commits, 99th percentile", "max"],
  ["chartroom_lock_wait_duration_p99", "Waits for locks, 99th percentile", "max"],
  ["nodejs_eventloop_utilization", "The event loop works", "max"],
  ["nodejs_eventloop_delay_p99", "Delays of the event loop, 99th percentile", "max"],
  ["chartroom_database_size", "Database", "sum"],
  ["process_memory_usage", "Memory of the process", "sum"],
  ["process_cpu_time_total", "Processor time since the start", "sum"],
  ["http_server_active_requests", "Requests in progress", "sum"],
  ["chartroom_streams_open", "Open streams of clients", "sum"],
  ["chartroom_limit_refusals_total", "Rejected over a limit since the start", "sum"],
  ["chartroom_backup_age", "Age of the newest good backup", "max"],
];

/** A figure as the page shows it. */
export interface FigureRow {
  readonly name: string;
  readonly label: string;
  readonly amount: string;
  /** The parts of the amount; empty for a single one. */
  readonly parts: string;
  /** Its description, from the server. */
  readonly description: string;
}

/** Returns the figures that have a label, in the order of the labels. Omits figures that the server does not report. */
export function rowsOf(figures: readonly Figure[], words: readonly Wording[]): FigureRow[] {
  return words.flatMap(([name, label, of]) => {
    const found = figures.filter((figure) => figure.name === name);
    const [first] = found;
    if (!first) return [];
    const values = found.map(({ value }) => value);
    const whole = of === "sum" ? values.reduce((sum, value) => sum + value, 0) : Math.max(...values);
    const parts = found.filter(({ labels, value }) => value > 0 && Object.keys(labels).length > 0);
    return {
      ...{ name, label, description: first.description },
      amount: isOfNever(first) ? "none yet" : amountOf(whole, first.unit),
      parts: parts.map((figure) => `${labelsOf(figure)}: ${amountOf(figure.value, figure.unit)}`).join(", "),
    };
  });
}

/** A backup that was never made has the age of 1970. */
const NEVER_S = 50 * 365 * 86_400;
const isOfNever = ({ name, value }: Figure): boolean => name === "chartroom_backup_age" && value > NEVER_S;

/** Returns the labels of a figure in words, such as `agent, queued`; empty without labels. */
export function labelsOf({ labels }: Figure): string {
  return Object.entries(labels)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([, value]) => value.replaceAll("_", " "))
    .join(", ");
}

/** What a target of the audit trail's export has not confirmed. */
export interface ExportLag {
  readonly target: string;
  readonly rows: string;
  /** How long the oldest of them has been waiting. */
  readonly oldest: string;
}

/** Returns how far each target of the audit trail's export is behind. */
export function exportLags(figures: readonly Figure[]): ExportLag[] {
  const of = (name: string) => figures.filter((figure) => figure.name === name);
  const ages = of("chartroom_audit_export_oldest_age");
  return of("chartroom_audit_export_pending").map((pending) => {
    const target = labelsOf(pending);
    const seconds = ages.find((age) => labelsOf(age) === target)?.value ?? 0;
    return {
      target,
      rows: amountOf(pending.value, pending.unit),
      oldest: pending.value === 0 ? "nothing waits" : amountOf(seconds, "s"),
    };
  });
}

const SIZES = ["bytes", "KiB", "MiB", "GiB", "TiB"] as const;

/** Returns an amount in words, such as `12 ms`, `3.4 MiB` or `2 runners`. @param unit by UCUM */
export function amountOf(value: number, unit: string): string {
  if (unit === "s") return timeOf(value);
  if (unit === "By") return sizeOf(value);
  if (unit === "1") return `${rounded(value * 100)} % of the time`;
  const [, thing] = /^\{(\w+)\}$/.exec(unit) ?? [];
  return thing ? `${rounded(value)} ${thing}${value === 1 ? "" : "s"}` : `${rounded(value)} ${unit}`;
}

function timeOf(seconds: number): string {
  if (seconds === 0 || seconds >= 10) return durationText(seconds);
  return seconds < 1 ? `${rounded(seconds * 1000)} ms` : `${rounded(seconds)} s`;
}

function sizeOf(bytes: number): string {
  let [value, at] = [bytes, 0];
  for (; value >= 1024 && at < SIZES.length - 1; at++) value /= 1024;
  return `${rounded(value)} ${bytes === 1 ? "byte" : SIZES[at]}`;
}

const rounded = (value: number): string =>
  value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 });

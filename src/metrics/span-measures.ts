import type { Metric } from "./metric.ts";

/** Why a span was not sent. */
export type SpanDrop = "queue" | "export";

/** Counts the spans that this process exported, and those that it dropped. */
export class SpanMeasures {
  sent = 0;
  readonly dropped: Record<SpanDrop, number> = { queue: 0, export: 0 };

  readonly metrics = (): readonly Metric[] => [
    {
      name: "chartroom.spans.sent",
      help: "Spans of traces that a collector has taken.",
      unit: "{span}",
      kind: "counter",
      values: [[{}, this.sent]],
    },
    {
      name: "chartroom.spans.dropped",
      help: "Spans of traces that were dropped: more waited than may, or the collector did not take them.",
      unit: "{span}",
      kind: "counter",
      values: Object.entries(this.dropped).map(([reason, count]) => [{ "chartroom.reason": reason }, count]),
    },
  ];
}

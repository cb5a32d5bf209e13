import { useEffect, useMemo, useState } from "react";
import type { GetServerHealthResponse as Health } from "#gen/service/v1/organization_service_pb.js";
import { Chart, type Curve } from "../../../parts/chart/Chart.tsx";
import { Empty, Section } from "../../../parts/Page.tsx";
import { amountOf } from "./figures.ts";

/** Maximum readings kept: an hour at one every five seconds. */
const MAX_READINGS = 720;
/** Milliseconds between two readings that count as a gap. */
const GAP_MS = 20_000;

/** One curve: its figure, and the label value if the figure has several. */
type Follows = readonly [label: string, tone: Curve["tone"], figure: string, state?: string];

/** The charts, each with its UCUM unit. */
const CHARTS: readonly { readonly label: string; readonly unit: string; readonly of: readonly Follows[] }[] =
  [
    {
      label: "Event loop delay",
      unit: "s",
      of: [["99th percentile", "running", "nodejs_eventloop_delay_p99"]],
    },
    {
      label: "Commits",
      unit: "s",
      of: [
        ["median", "running", "chartroom_commit_duration_p50"],
        ["99th percentile", "asks", "chartroom_commit_duration_p99"],
      ],
    },
    {
      label: "Work for runners",
      unit: "{item}",
      of: [
        ["waiting", "asks", "chartroom_work_items", "queued"],
        ["running", "running", "chartroom_work_items", "leased"],
      ],
    },
  ];

/** All curves of all charts, in one list. */
const FOLLOWED = CHARTS.flatMap(({ of }) => of);

interface Reading {
  readonly at: number;
  /** One value for each of FOLLOWED; an empty list marks a gap. */
  readonly values: readonly (number | null)[];
}

/** Keeps the figures as they are read while the page is open. */
function useReadings(health: Health, at: number): readonly Reading[] {
  const [readings, setReadings] = useState<readonly Reading[]>([]);
  useEffect(() => {
    setReadings((before) => {
      const last = before.at(-1)?.at;
      if (last === at) return before;
      const gap = last !== undefined && at - last > GAP_MS ? [{ at: at - 1, values: [] }] : [];
      const values = FOLLOWED.map((each) => amountIn(health, each));
      return [...before, ...gap, { at, values }].slice(-MAX_READINGS);
    });
  }, [health, at]);
  return readings;
}

function amountIn({ server, organization }: Health, [, , name, state]: Follows): number | null {
  const found = [...server, ...organization].filter(
    (figure) => figure.name === name && (state === undefined || Object.values(figure.labels).includes(state)),
  );
  // The server omits the figure of a state that nothing has.
  const none = state !== undefined && organization.length > 0 ? 0 : null;
  return found.length === 0 ? none : found.reduce((sum, { value }) => sum + value, 0);
}

const clockText = (time: number): string => new Date(time * 1000).toLocaleTimeString("en-GB");

/** Draws the server's figures since the page was opened. */
export function Curves({ health, readAt }: { readonly health: Health; readonly readAt: number }) {
  const readings = useReadings(health, readAt);
  const times = useMemo(() => readings.map(({ at }) => at / 1000), [readings]);
  const charts = useMemo(
    () =>
      CHARTS.map(({ label, unit, of }) => ({
        ...{ label, unit },
        curves: of.map((each) => ({
          ...{ label: each[0], tone: each[1] },
          values: readings.map(({ values }) => values[FOLLOWED.indexOf(each)] ?? null),
        })),
      })).filter(({ curves }) => curves.some(({ values }) => values.some((value) => value !== null))),
    [readings],
  );
  return (
    <Section title="Since this page was opened">
      {readings.length < 2 || charts.length === 0 ? (
        <Empty title="The charts start with the second reading." />
      ) : (
        <div className="charts">
          {charts.map(({ label, unit, curves }) => (
            <Chart
              key={label}
              label={label}
              head="Read at"
              times={times}
              curves={curves}
              isCounted={unit.startsWith("{")}
              timeText={clockText}
              amountText={(value) => amountOf(value, unit)}
            />
          ))}
        </div>
      )}
    </Section>
  );
}

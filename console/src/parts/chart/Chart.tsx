import { useState } from "react";
import { DataTable } from "../DataTable.tsx";
import { Details } from "../Details.tsx";
import { loadedPart } from "../loaded-part.tsx";
import { TONES } from "./tones.ts";
import "./chart.css";

/** Loaded with the first chart, since most pages have none. */
const Plot = loadedPart(async () => (await import("./Plot.tsx")).default, {
  loading: <div className="chart-plot" />,
  // The table below has the same data.
  failed: () => <div className="chart-plot" />,
});

/** One curve of a chart. */
export interface Curve {
  readonly label: string;
  readonly tone: keyof typeof TONES;
  /** One value for each time; null for a gap. */
  readonly values: readonly (number | null)[];
}

/** What a chart shows. */
export interface ChartProps {
  readonly label: string;
  /** Seconds since 1970, ascending. */
  readonly times: readonly number[];
  readonly curves: readonly Curve[];
  /** Header of the table's column of times. */
  readonly head: string;
  readonly timeText: (time: number) => string;
  readonly amountText: (value: number) => string;
  /** Whether the amounts are whole numbers. */
  readonly isCounted?: boolean;
  /** Whether each point is a day, which gets a mark and a name. */
  readonly isDaily?: boolean;
}

/** Maximum rows of the table; longer data is shown only as curves. */
const ROWS = 60;

/**
 * Draws curves and shows their amounts at the pointer, or the last ones. A table has the same data for people who
 * cannot see the curves.
 */
export function Chart({ label, head, ...of }: ChartProps) {
  const { times, curves, timeText, amountText } = of;
  const [point, setPoint] = useState<number>();
  const shown = point !== undefined && point < times.length ? point : times.length - 1;
  const textOf = (value: number | null | undefined) => (typeof value === "number" ? amountText(value) : "–");
  const rows = times.map((time, at) => ({ time, at })).slice(-ROWS);
  return (
    <figure className="chart" aria-label={label}>
      <figcaption className="chart-head">
        <span className="chart-name">{label}</span>
        <span className="dim small figures">{timeText(times[shown] ?? 0)}</span>
        {curves.map((curve) => (
          <span key={curve.label} className="chart-key figures">
            <svg className={`tone-${curve.tone}`} width="24" height="8" aria-hidden="true">
              <line
                x1="0"
                x2="24"
                y1="4"
                y2="4"
                stroke="currentColor"
                strokeWidth="2"
                strokeDasharray={TONES[curve.tone].dash.join(" ")}
              />
            </svg>
            {curve.label} <b>{textOf(curve.values[shown])}</b>
          </span>
        ))}
      </figcaption>
      <Plot {...of} onPoint={setPoint} />
      <Details className="chart-table" summary={`${label}, as a table`}>
        <DataTable
          label={label}
          rows={rows}
          keyOf={({ time }) => String(time)}
          columns={[
            { head, cell: ({ time }) => timeText(time) },
            ...curves.map((curve) => ({
              head: curve.label,
              cell: ({ at }: { readonly at: number }) => textOf(curve.values[at]),
              isNumeric: true,
            })),
          ]}
        />
      </Details>
    </figure>
  );
}

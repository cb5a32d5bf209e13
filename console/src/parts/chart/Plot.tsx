import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useRef } from "react";
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { ChartProps } from "./Chart.tsx";
import { TONES } from "./tones.ts";

const HEIGHT = 160;
/** Pixels for the labels of the vertical axis. */
const WORDS = 76;
/** Minimum width in pixels to label every day. */
const NARROW = 480;
const FONT = "12px system-ui, sans-serif";

interface PlotProps extends Omit<ChartProps, "label" | "head"> {
  /** Called with the point under the pointer; undefined when the pointer leaves. */
  readonly onPoint: (index: number | undefined) => void;
}

/** Draws curves on a canvas, in the colours of the theme, using the available width. */
export default function Plot(props: PlotProps) {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot>(null);
  const latest = useRef(props);
  latest.current = props;
  const scheme = useComputedColorScheme("light");
  // biome-ignore lint/correctness/useExhaustiveDependencies: another scheme has other colours
  useEffect(() => {
    const { current: element } = frame;
    if (!element) return;
    const drawn = new UPlot(optionsOf(latest, element), dataOf(latest.current), element);
    plot.current = drawn;
    const observer = new ResizeObserver(() => {
      drawn.setSize({ width: element.clientWidth, height: HEIGHT });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      drawn.destroy();
    };
  }, [scheme]);
  const { times, curves } = props;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the points are what has changed
  useEffect(() => plot.current?.setData(dataOf(latest.current)), [times, curves]);
  return <div ref={frame} className="chart-plot" aria-hidden="true" />;
}

const dataOf = ({ times, curves }: PlotProps): UPlot.AlignedData => [
  [...times],
  ...curves.map(({ values }) => [...values]),
];

function optionsOf(latest: { readonly current: PlotProps }, element: HTMLElement): UPlot.Options {
  const style = getComputedStyle(element);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const { curves, isDaily = false, isCounted = false } = latest.current;
  const axis = { stroke: colour("--dim"), font: FONT, ticks: { show: false } };
  const grid = { stroke: colour("--line"), width: 1 };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    scales: { x: { time: true }, y: { range: (_plot, _least, most) => [0, most > 0 ? most * 1.1 : 1] } },
    series: [
      {},
      ...curves.map(({ tone }) => {
        const { name, dash } = TONES[tone];
        return { stroke: colour(name), width: 2, dash: [...dash], points: { show: isDaily, size: 6 } };
      }),
    ],
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 32,
        gap: 10,
        space: 72,
        ...(isDaily && { splits: ({ data }: UPlot) => [...data[0]], space: 0 }),
        values({ width }, splits) {
          // When the names of all days do not fit, label every second one.
          const step = isDaily && width < NARROW ? 2 : 1;
          return splits.map((time, at) =>
            (splits.length - 1 - at) % step === 0 ? latest.current.timeText(time) : "",
          );
        },
      },
      {
        ...{ ...axis, grid, size: WORDS, space: 40 },
        // Counts have no fractions.
        ...(isCounted && { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000] }),
        values: (_plot, splits) => splits.map((value) => latest.current.amountText(value)),
      },
    ],
    hooks: { setCursor: [({ cursor }) => latest.current.onPoint(cursor.idx ?? undefined)] },
  };
}

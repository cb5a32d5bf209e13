import { monitorEventLoopDelay, performance } from "node:perf_hooks";
import { getHeapStatistics } from "node:v8";
import type { Metric } from "./metric.ts";

/** The figures that a process knows about itself. */
export interface ProcessFigures {
  cpuUsage(): { readonly user: number; readonly system: number };
  memoryUsage(): { readonly rss: number };
  uptime(): number;
}

/** Sampling interval of the event loop's delay, in milliseconds. */
const RESOLUTION_MS = 20;

const NANOSECONDS = 1e9;

/** Measures the process and its event loop, with OpenTelemetry's names. */
export class ProcessMeasures {
  readonly #figures: ProcessFigures;
  readonly #delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  #utilization = performance.eventLoopUtilization();

  constructor(figures: ProcessFigures) {
    this.#figures = figures;
    this.#delay.enable();
  }

  /** Returns the metrics; those of the event loop cover the time since the last call. */
  readonly metrics = (): readonly Metric[] => {
    const { user, system } = this.#figures.cpuUsage();
    const heap = getHeapStatistics();
    const delay = this.#delay;
    const seconds = (nanoseconds: number) => (delay.count > 0 ? nanoseconds / NANOSECONDS : 0);
    const delays = [
      ["p50", seconds(delay.percentile(50))],
      ["p99", seconds(delay.percentile(99))],
      ["max", seconds(delay.max)],
    ] as const;
    const utilization = performance.eventLoopUtilization();
    const since = performance.eventLoopUtilization(utilization, this.#utilization);
    this.#utilization = utilization;
    delay.reset();
    return [
      {
        name: "process.cpu.time",
        help: "Processor time of the process.",
        unit: "s",
        kind: "counter",
        values: [
          [{ "cpu.mode": "user" }, user / 1e6],
          [{ "cpu.mode": "system" }, system / 1e6],
        ],
      },
      gauge(
        "process.memory.usage",
        "Memory of the process that is resident.",
        "By",
        this.#figures.memoryUsage().rss,
      ),
      gauge("v8js.memory.heap.used", "Memory of the heap that holds objects.", "By", heap.used_heap_size),
      gauge("process.uptime", "Time since the process started.", "s", this.#figures.uptime()),
      gauge(
        "nodejs.eventloop.utilization",
        "Share of the time in which the event loop worked.",
        "1",
        since.utilization,
      ),
      ...delays.map(([name, value]) =>
        gauge(
          `nodejs.eventloop.delay.${name}`,
          "Delay of the event loop since the last collection.",
          "s",
          value,
        ),
      ),
    ];
  };

  close(): void {
    this.#delay.disable();
  }
}

function gauge(name: string, help: string, unit: string, value: number): Metric {
  return { name, help, unit, kind: "gauge", values: [[{}, value]] };
}

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { INACTIVE_AFTER_MS } from "../src/domain/runner/runner-heartbeat.ts";
import { ROOT } from "./harness/program.ts";

const read = (name: string) => readFileSync(join(ROOT, "docs", name), "utf8");

/** Labels that the scrape adds, and that of the buckets of histograms. */
const OF_EVERY = ["instance", "job", "le"];
/** What Prometheus itself tells of each scrape. */
const OF_PROMETHEUS = "up";

/** The metrics of docs/metrics.md, which a test holds against what is served: by name, type and labels. */
const METRICS = new Map(
  [...read("metrics.md").matchAll(/^\| `(\w+)` \| (\w+) \| .+? \|(.*)\|$/gm)].map(
    ([, name = "", type = "", labels = ""]) => [
      name,
      { type, labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label = ""]) => label) },
    ],
  ),
);

/** Words of the query language, which are not names of metrics. */
const WORDS = new Set([
  "sum",
  "max",
  "min",
  "by",
  "on",
  "and",
  "rate",
  "increase",
  "min_over_time",
  "topk",
  "histogram_quantile",
]);

/** Returns what is wrong with an expression: names that do not exist, labels that a metric has not, parentheses. */
function problemsOf(expression: string): string[] {
  const problems: string[] = [];
  const texts = expression.replaceAll(/"[^"]*"/g, '""');
  for (const [open, close] of ["()", "{}", "[]"])
    if (texts.split(open as string).length !== texts.split(close as string).length)
      problems.push(`${open}${close} are not in pairs`);
  const grouped = [...texts.matchAll(/\b(?:by|on) ?\(([^)]*)\)/g)].flatMap(([, list = ""]) =>
    list.split(",").map((label) => label.trim()),
  );
  const bare = texts.replaceAll(/\b(?:by|on) ?\([^)]*\)/g, "").replaceAll(/\[[^\]]*\]/g, "");
  const labelsOf: string[] = [];
  for (const [, name = "", matchers = ""] of bare.matchAll(/\b([a-z][a-z0-9_]*)\b(?:\{([^}]*)\})?/g)) {
    if (WORDS.has(name) || !isOutside(bare, name)) continue;
    if (name === OF_PROMETHEUS) continue;
    const [, base = name, part] = /^(\w+?)_(bucket|count|sum)$/.exec(name) ?? [];
    const metric = METRICS.get(part ? base : name) ?? METRICS.get(name);
    if (!metric) {
      problems.push(`there is no ${name}`);
      continue;
    }
    if ((metric.type === "histogram") !== (part !== undefined && METRICS.has(base)))
      problems.push(`${name} is of the type ${metric.type}`);
    labelsOf.push(...metric.labels);
    for (const [, label = ""] of matchers.matchAll(/(\w+) ?(?:=~|!~|!=|=)/g))
      if (![...metric.labels, ...OF_EVERY].includes(label)) problems.push(`${name} has no label ${label}`);
  }
  for (const label of grouped)
    if (label !== "" && ![...labelsOf, ...OF_EVERY].includes(label)) problems.push(`nothing has ${label}`);
  return problems;
}

/** Returns whether a name is outside of all braces: those in them are labels. */
function isOutside(expression: string, name: string): boolean {
  return new RegExp(`\\b${name}\\b`).test(expression.replaceAll(/\{[^}]*\}/g, ""));
}

/** The sections of the page, as addresses name them. */
const ANCHORS = [...read("operations.md").matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
  title
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, "")
    .replaceAll(" ", "-"),
);

describe("the test itself", () => {
  test.each([
    ["sum(rate(chartroom_nothing[5m]))", "there is no chartroom_nothing"],
    ['chartroom_ready{chartroom_phase="x"}', "chartroom_ready has no label chartroom_phase"],
    ["sum by (chartroom_kind) (chartroom_ready)", "nothing has chartroom_kind"],
    ["chartroom_commit_duration > 1", "chartroom_commit_duration is of the type histogram"],
    ["sum(chartroom_ready", "() are not in pairs"],
  ])("finds what is wrong with %s", (expression, problem) => {
    expect(problemsOf(expression)).toEqual([problem]);
  });
});

describe("the alert rules", () => {
  const rules = read("operations/alerts.yaml")
    .split(/^ {6}- alert: /m)
    .slice(1)
    .map((text) => ({
      name: /^\w+/.exec(text)?.[0] ?? "",
      expression: (/^ {8}expr: (?:>-\n((?: {10}.*\n)+)|(.*))/m.exec(text) ?? [])
        .slice(1)
        .join("")
        .replaceAll(/\s+/g, " ")
        .trim(),
      severity: /^ {10}severity: (\w+)$/m.exec(text)?.[1],
      summary: /^ {10}summary: "(.+)"$/m.exec(text)?.[1],
      runbook: /^ {10}runbook: docs\/operations\.md#(\S+)$/m.exec(text)?.[1],
    }));

  test("name metrics and labels that exist", () => {
    expect(rules.length).toBeGreaterThan(10);
    for (const { name, expression } of rules) {
      expect([name, expression]).not.toEqual([name, ""]);
      expect([name, problemsOf(expression)]).toEqual([name, []]);
    }
  });

  test("do not wait for a longer silence than a connected runner can have", () => {
    const longest = INACTIVE_AFTER_MS / 1000;
    const silences = rules.flatMap(({ expression }) =>
      [...expression.matchAll(/chartroom_runner_silence_max\)? > (\d+)/g)].map(([, seconds]) =>
        Number(seconds),
      ),
    );
    expect(silences.filter((seconds) => seconds >= longest)).toEqual([]);
    expect(rules.find(({ name }) => name === "ChartroomRunnerSilent")?.expression).toContain(
      'chartroom_runner_state="disconnected"',
    );
  });

  test("each have a severity, a sentence, and a section of the page that says what to do", () => {
    for (const { name, severity, summary, runbook } of rules) {
      expect([name, ["critical", "warning", "info"].includes(severity ?? "")]).toEqual([name, true]);
      expect([name, summary]).not.toEqual([name, undefined]);
      expect([name, ANCHORS]).toEqual([name, expect.arrayContaining([runbook])]);
    }
    expect(new Set(rules.map(({ name }) => name)).size).toBe(rules.length);
  });
});

describe("the board", () => {
  interface Panel {
    readonly id: number;
    readonly title: string;
    readonly type: string;
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
    readonly targets?: readonly { readonly refId: string; readonly expr: string }[];
  }
  const { panels } = JSON.parse(read("operations/board.json")) as { readonly panels: readonly Panel[] };
  const expressions = panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr]));

  test("names metrics and labels that exist", () => {
    expect(expressions.length).toBeGreaterThan(20);
    for (const [title, expression = ""] of expressions)
      expect([title, problemsOf(expression)]).toEqual([title, []]);
  });

  test("shows every metric of the page but the uptime and shares of the process", () => {
    const shown = expressions.map(([, expression]) => expression).join(" ");
    const hidden = [...METRICS.keys()].filter(
      (name) => !new RegExp(`\\b${name}(_bucket|_count|_sum)?\\b`).test(shown),
    );
    expect(hidden).toEqual(["process_uptime", "nodejs_eventloop_utilization", "nodejs_eventloop_delay_p50"]);
  });

  test("has panels with ids of their own that do not overlap", () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    for (const { gridPos } of panels) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
  });
});

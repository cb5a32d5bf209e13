import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { replay } from "../../../test/harness/seed.ts";
import { nextInstant } from "./schedule.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** Three years; the second is a leap year. */
const START_MS = Date.UTC(2027, 0, 1);
const END_MS = Date.UTC(2030, 0, 1);

/**
 * Returns the expected instants. It parses the fields and tests every minute, independently of the code under test
 * and of the package that it uses.
 */
function referenceInstants(expression: string, fromMs: number, toMs: number): number[] {
  const texts = expression.toLowerCase().trim().split(/\s+/);
  const names = ["sun mon tue wed thu fri sat", "jan feb mar apr may jun jul aug sep oct nov dec"];
  const number = (text: string, index: number) => {
    if (index === 3 && /[a-z]/.test(text)) return (names[1]?.split(" ").indexOf(text) as number) + 1;
    if (index === 4 && /[a-z]/.test(text)) return names[0]?.split(" ").indexOf(text) as number;
    return Number(text);
  };
  const spans = [
    [0, 59],
    [0, 23],
    [1, 31],
    [1, 12],
    [0, 7],
  ] as const;
  const sets = spans.map(([least, most], index) => {
    const set = new Set<number>();
    for (const item of (texts[index] ?? "").split(",")) {
      const [span = "", step = "1"] = item.split("/");
      let [from, to]: [number, number] = [least, most];
      if (span !== "*") {
        const [first = "", last = first] = span.split("-");
        from = number(first, index);
        to = number(last, index);
        if (index === 4 && to < from) to = 7;
      }
      for (let value = from; value <= to; value += Number(step)) set.add(index === 4 ? value % 7 : value);
    }
    return set;
  });
  const both = texts[2]?.startsWith("*") || texts[4]?.startsWith("*");
  const found: number[] = [];
  for (let time = fromMs; time < toMs; time += MINUTE_MS) {
    const date = new Date(time);
    const ofMonth = sets[2]?.has(date.getUTCDate());
    const ofWeek = sets[4]?.has(date.getUTCDay());
    if (!(both ? ofMonth && ofWeek : ofMonth || ofWeek) || !sets[3]?.has(date.getUTCMonth() + 1)) {
      time += DAY_MS - MINUTE_MS - (time % DAY_MS);
      continue;
    }
    if (sets[0]?.has(date.getUTCMinutes()) && sets[1]?.has(date.getUTCHours())) found.push(time);
  }
  return found;
}

function scheduledInstants(expression: string, fromMs: number, toMs: number): number[] {
  const found: number[] = [];
  let instant = nextInstant({ cronExpression: expression, timeZone: "" }, fromMs - 1);
  while (instant !== undefined && instant < toMs) {
    found.push(instant);
    instant = nextInstant({ cronExpression: expression, timeZone: "" }, instant);
  }
  return found;
}

describe("three years of instants are those of a reference that looks at every minute", () => {
  const SPARSE = [
    "0 0 * * *",
    "59 23 31 12 *",
    "0 0 1 1 *",
    "30 4 1,15 * 5",
    "0 12 * * MON-FRI",
    "0 12 * * mon,Wed,FRI",
    "15 6 * * 0",
    "15 6 * * 7",
    "15 6 * * SUN",
    "0 9 * * SAT-SUN",
    "0 9 * * 5-7",
    "0 9 * * 0-7",
    "5 5 * JAN,jul *",
    "5 5 31 * *",
    "0 0 29 2 *",
    "0 0 29 FEB MON",
    "0 0 13 * FRI",
    "0 0 */2 * 1",
    "0 0 1-7 * */7",
    "0 0 *,5 * 2",
    "0 0 5,* * 2",
    "0 0 10-20/5 */3 *",
    "10-50/20 8-18/5 * * 1-5",
    "0,30 0,12 1 1-6/2 *",
    "  7   7 7\t7 7 ",
    "08 09 * 04-06 *",
    "0 */6 28-31 * *",
    "*/60 */24 * * *",
  ];
  test.each(SPARSE)("%s", (expression) => {
    const expected = referenceInstants(expression, START_MS, END_MS);
    expect(expected.length).toBeGreaterThan(0);
    expect(scheduledInstants(expression, START_MS, END_MS)).toEqual(expected);
  });

  // These fire too often to scan three years in a test; three days around a leap day cover the same edges.
  test.each(["* * * * *", "*/7 * * * *", "1-59/2 */2 * * *", "* 0 29 2 *", "*/25 23,0 28,29 2-3 TUE"])(
    "%s around a leap day",
    (expression) => {
      const [from, to] = [Date.UTC(2028, 1, 28), Date.UTC(2028, 2, 2)];
      expect(scheduledInstants(expression, from, to)).toEqual(referenceInstants(expression, from, to));
    },
  );

  test("any expression of numbers, lists, ranges and steps, from any moment", () => {
    const field = (least: number, most: number) => {
      const value = fc.integer({ min: least, max: most });
      const span = fc.tuple(value, value).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`);
      const step = fc.integer({ min: 1, max: most }).map((every) => `/${every}`);
      const item = fc.oneof(
        value.map(String),
        fc
          .tuple(fc.oneof(fc.constant("*"), span), fc.option(step, { nil: "" }))
          .map((parts) => parts.join("")),
      );
      return fc.array(item, { minLength: 1, maxLength: 3 }).map((items) => items.join(","));
    };
    const expressions = fc
      .tuple(field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 7))
      .map((fields) => fields.join(" "));
    fc.assert(
      fc.property(
        expressions,
        fc.integer({ min: START_MS, max: END_MS - 40 * DAY_MS }),
        (expression, fromMs) => {
          const fromMinuteMs = (Math.floor(fromMs / MINUTE_MS) + 1) * MINUTE_MS;
          const expected = referenceInstants(expression, fromMinuteMs, fromMinuteMs + 40 * DAY_MS)[0];
          const found = nextInstant({ cronExpression: expression, timeZone: "" }, fromMs);
          if (expected === undefined)
            expect(found ?? Infinity).toBeGreaterThanOrEqual(fromMinuteMs + 40 * DAY_MS);
          else expect(found).toBe(expected);
        },
      ),
      { ...replay, numRuns: 300 },
    );
  });
});

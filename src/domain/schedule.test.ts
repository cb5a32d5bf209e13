import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { replay } from "../../test/harness/seed.ts";
import { DomainError } from "./error.ts";
import { checkSchedule, dueInstant, MOST_MISSED, nextInstant, prebuildInstant } from "./schedule.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** Three years, the second of which is a leap year. */
const START_MS = Date.UTC(2027, 0, 1);
const END_MS = Date.UTC(2030, 0, 1);
const at = (text: string) => Date.parse(text);

/**
 * The reference: reads the fields by itself and looks at every minute. It knows
 * nothing of the code under test or of the package below it.
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
  let instant = nextInstant(expression, fromMs - 1);
  while (instant !== undefined && instant < toMs) {
    found.push(instant);
    instant = nextInstant(expression, instant);
  }
  return found;
}

function refusal(expression: string): string {
  try {
    checkSchedule(expression, START_MS, "triggers[0].time.cronExpression");
  } catch (error) {
    expect(error).toBeInstanceOf(DomainError);
    const { reason, metadata, message } = error as DomainError;
    expect([reason, metadata]).toEqual([
      ErrorReason.VALUE_UNUSABLE,
      { field: "triggers[0].time.cronExpression" },
    ]);
    return message;
  }
  return "accepted";
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

  // These fire too often to walk three years in a test; three days around a leap day hold the same edges.
  test.each(["* * * * *", "*/7 * * * *", "1-59/2 */2 * * *", "* 0 29 2 *", "*/25 23,0 28,29 2-3 TUE"])(
    "%s around a leap day",
    (expression) => {
      const [from, to] = [at("2028-02-28T00:00:00Z"), at("2028-03-02T00:00:00Z")];
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
          const found = nextInstant(expression, fromMs);
          if (expected === undefined)
            expect(found ?? Infinity).toBeGreaterThanOrEqual(fromMinuteMs + 40 * DAY_MS);
          else expect(found).toBe(expected);
        },
      ),
      { ...replay, numRuns: 300 },
    );
  });
});

describe("an expression that is refused when it is written", () => {
  test.each([
    ["", "has 0"],
    ["0 0 * *", "has 4"],
    ["0 0 0 * * *", "has 6"],
    ["0 0 0 * * * 2027", "has 7"],
    ["@daily", '"@daily" has 1'],
    ["0 0 * *\n", "has 4"],
  ])("%j has not five fields", (expression, says) => {
    expect(refusal(expression)).toContain("write the five cron fields");
    expect(refusal(expression)).toContain(says);
  });

  test.each([
    ["60 * * * *", "60", "minute"],
    ["-1 * * * *", "-1", "minute"],
    ["MON * * * *", "MON", "minute"],
    ["? * * * *", "?", "minute"],
    ["5/15 * * * *", "5/15", "minute"],
    ["*/0 * * * *", "*/0", "minute"],
    ["*/61 * * * *", "*/61", "minute"],
    ["1,,2 * * * *", "1,,2", "minute"],
    ["1, * * * *", "1,", "minute"],
    ["1-2-3 * * * *", "1-2-3", "minute"],
    ["5-3 * * * *", "5-3", "minute"],
    ["1.5 * * * *", "1.5", "minute"],
    ["*-5 * * * *", "*-5", "minute"],
    ["5-* * * * *", "5-*", "minute"],
    ["*/* * * * *", "*/*", "minute"],
    ["** * * * *", "**", "minute"],
    ["*/1-3 * * * *", "*/1-3", "minute"],
    ["1/2/3 * * * *", "1/2/3", "minute"],
    ["007 * * * *", "007", "minute"],
    ["1_0 * * * *", "1_0", "minute"],
    ["* 24 * * *", "24", "hour"],
    ["* * 0 * *", "0", "day of month"],
    ["* * 32 * *", "32", "day of month"],
    ["* * L * *", "L", "day of month"],
    ["* * LW * *", "LW", "day of month"],
    ["* * 15W * *", "15W", "day of month"],
    ["* * ? * *", "?", "day of month"],
    ["* * * 0 *", "0", "month"],
    ["* * * 13 *", "13", "month"],
    ["* * * FRI *", "FRI", "month"],
    ["* * * FOO *", "FOO", "month"],
    ["* * * * 8", "8", "day of week"],
    ["* * * * JAN", "JAN", "day of week"],
    ["* * * * FRIDAY", "FRIDAY", "day of week"],
    ["* * * * 5L", "5L", "day of week"],
    ["* * * * FRI#2", "FRI#2", "day of week"],
    ["0 0 1 * +MON", "+MON", "day of week"],
    ["* * * * FRI-MON", "FRI-MON", "day of week"],
    ["* * * * *L", "*L", "day of week"],
    ["* * * * MON/2", "MON/2", "day of week"],
    ["* * * * */MON", "*/MON", "day of week"],
  ])("%s names the field that is wrong", (expression, text, name) => {
    expect(refusal(expression)).toContain(`"${text}" is no ${name}: it takes `);
  });

  test.each(["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 30 2 */2", "* * 31 feb *"])(
    "%s never comes due",
    (expression) => {
      expect(refusal(expression)).toContain("never comes due");
    },
  );

  test.each(["59 23 31 12 7", "0 0 1 1 0", "0 0 29 2 *", "0 0 29 2 */7", "0 0 30 2 1", "*/60 * * * *"])(
    "%s is not refused",
    (expression) => {
      expect(refusal(expression)).toBe("accepted");
    },
  );
});

describe("the next instant", () => {
  test("is after the given moment, never at it", () => {
    const noon = at("2027-05-05T12:00:00Z");
    expect(nextInstant("0 12 * * *", noon - 1)).toBe(noon);
    expect(nextInstant("0 12 * * *", noon)).toBe(noon + DAY_MS);
    expect(nextInstant("0 12 * * *", noon + 1)).toBe(noon + DAY_MS);
  });

  test("is none for an expression that never comes due", () => {
    expect(nextInstant("0 0 30 2 *", START_MS)).toBeUndefined();
  });

  test("is read in UTC, whatever the hours that clocks skip elsewhere", () => {
    expect(nextInstant("30 2 * * *", at("2027-03-27T12:00:00Z"))).toBe(at("2027-03-28T02:30:00Z"));
  });
});

describe("what is due after a downtime", () => {
  const last = at("2027-05-05T12:00:00Z");

  test("is nothing before the next instant, and that instant from its own millisecond on", () => {
    expect(dueInstant("0 * * * *", last, last)).toBeUndefined();
    expect(dueInstant("0 * * * *", last, last + 60 * MINUTE_MS - 1)).toBeUndefined();
    const instantMs = last + 60 * MINUTE_MS;
    expect(dueInstant("0 * * * *", last, instantMs)).toEqual({ instantMs, missed: 0 });
    expect(dueInstant("0 * * * *", last, instantMs + 1)).toEqual({ instantMs, missed: 0 });
    expect(dueInstant("0 * * * *", last - 1, instantMs)).toEqual({ instantMs, missed: 1 });
  });

  test("is the latest instant alone; those before it were missed", () => {
    expect(dueInstant("0 * * * *", last, last + 150 * MINUTE_MS)).toEqual({
      instantMs: last + 120 * MINUTE_MS,
      missed: 1,
    });
  });

  test("is nothing when the clock went back", () => {
    expect(dueInstant("0 * * * *", last, last - DAY_MS)).toBeUndefined();
  });

  test("is nothing for an expression that never comes due", () => {
    expect(dueInstant("0 0 30 2 *", last, last + DAY_MS)).toBeUndefined();
  });

  test.each([
    [MOST_MISSED - 1, MOST_MISSED - 1],
    [MOST_MISSED, MOST_MISSED],
    [MOST_MISSED + 1, MOST_MISSED],
  ])("counts %i missed instants as %i", (passed, missed) => {
    const instantMs = last + (passed + 1) * MINUTE_MS;
    expect(dueInstant("* * * * *", last, instantMs + 30_000)).toEqual({ instantMs, missed });
  });

  test("does not walk through a downtime of years", () => {
    const nowMs = last + 3_650 * DAY_MS;
    expect(dueInstant("* * * * *", last, nowMs)).toEqual({ instantMs: nowMs, missed: MOST_MISSED });
  });
});

describe("the instant of a daily prebuild", () => {
  const id = "0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b";

  test("comes once a day at the same second of the first 15 minutes of its hour", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 23 }),
        fc.uuid(),
        fc.integer({ min: START_MS, max: END_MS }),
        (hour, anyId, afterMs) => {
          const first = prebuildInstant(hour, anyId, afterMs);
          expect(first).toBeGreaterThan(afterMs);
          expect(first - afterMs).toBeLessThanOrEqual(DAY_MS);
          const intoHourMs = first - Math.floor(first / DAY_MS) * DAY_MS - hour * 3_600_000;
          expect(intoHourMs).toBeGreaterThanOrEqual(0);
          expect(intoHourMs).toBeLessThanOrEqual(899_000);
          expect(intoHourMs % 1_000).toBe(0);
          expect(prebuildInstant(hour, anyId, first - 1)).toBe(first);
          expect(prebuildInstant(hour, anyId, first)).toBe(first + DAY_MS);
        },
      ),
      replay,
    );
  });

  test("stays where it is from release to release", () => {
    expect(prebuildInstant(3, id, at("2027-05-05T12:00:00Z"))).toBe(at("2027-05-06T03:10:56Z"));
  });

  test("spreads many ids over the 15 minutes", () => {
    const perMinute = new Array<number>(15).fill(0);
    for (let index = 0; index < 1_500; index += 1) {
      const minute = new Date(prebuildInstant(3, `${id}/${index}`, START_MS)).getUTCMinutes();
      perMinute[minute] = (perMinute[minute] ?? 0) + 1;
    }
    expect(Math.min(...perMinute)).toBeGreaterThan(60);
    expect(Math.max(...perMinute)).toBeLessThan(140);
  });
});

import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { replay } from "../../../test/harness/seed.ts";
import { DomainError } from "../error.ts";
import {
  findDueInstant,
  MAX_MISSED,
  nextInstant,
  prebuildInstant,
  requireValidSchedule,
  type Schedule,
  upcomingInstants,
} from "./schedule.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const START_MS = Date.UTC(2027, 0, 1);
const END_MS = Date.UTC(2030, 0, 1);
const utc = (cronExpression: string) => ({ cronExpression, timeZone: "" });
const at = (text: string) => Date.parse(text);

function refusal(expression: string): string {
  try {
    requireValidSchedule(utc(expression), START_MS, "triggers[0].time");
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
    expect(nextInstant(utc("0 12 * * *"), noon - 1)).toBe(noon);
    expect(nextInstant(utc("0 12 * * *"), noon)).toBe(noon + DAY_MS);
    expect(nextInstant(utc("0 12 * * *"), noon + 1)).toBe(noon + DAY_MS);
  });

  test("is none for an expression that never comes due", () => {
    expect(nextInstant(utc("0 0 30 2 *"), START_MS)).toBeUndefined();
  });

  test("is read in UTC, whatever the hours that clocks skip elsewhere", () => {
    expect(nextInstant(utc("30 2 * * *"), at("2027-03-27T12:00:00Z"))).toBe(at("2027-03-28T02:30:00Z"));
  });
});

describe("what is due after a downtime", () => {
  const last = at("2027-05-05T12:00:00Z");

  test("is nothing before the next instant, and that instant from its own millisecond on", () => {
    expect(findDueInstant(utc("0 * * * *"), last, last)).toBeUndefined();
    expect(findDueInstant(utc("0 * * * *"), last, last + 60 * MINUTE_MS - 1)).toBeUndefined();
    const instantMs = last + 60 * MINUTE_MS;
    expect(findDueInstant(utc("0 * * * *"), last, instantMs)).toEqual({ instantMs, missed: 0 });
    expect(findDueInstant(utc("0 * * * *"), last, instantMs + 1)).toEqual({ instantMs, missed: 0 });
    expect(findDueInstant(utc("0 * * * *"), last - 1, instantMs)).toEqual({ instantMs, missed: 1 });
  });

  test("is the latest instant alone; those before it were missed", () => {
    expect(findDueInstant(utc("0 * * * *"), last, last + 150 * MINUTE_MS)).toEqual({
      instantMs: last + 120 * MINUTE_MS,
      missed: 1,
    });
  });

  test("is nothing when the clock went back", () => {
    expect(findDueInstant(utc("0 * * * *"), last, last - DAY_MS)).toBeUndefined();
  });

  test("is nothing for an expression that never comes due", () => {
    expect(findDueInstant(utc("0 0 30 2 *"), last, last + DAY_MS)).toBeUndefined();
  });

  test.each([
    [MAX_MISSED - 1, MAX_MISSED - 1],
    [MAX_MISSED, MAX_MISSED],
    [MAX_MISSED + 1, MAX_MISSED],
  ])("counts %i missed instants as %i", (passed, missed) => {
    const instantMs = last + (passed + 1) * MINUTE_MS;
    expect(findDueInstant(utc("* * * * *"), last, instantMs + 30_000)).toEqual({ instantMs, missed });
  });

  test("does not walk through a downtime of years", () => {
    const nowMs = last + 3_650 * DAY_MS;
    expect(findDueInstant(utc("* * * * *"), last, nowMs)).toEqual({ instantMs: nowMs, missed: MAX_MISSED });
  });
});

describe("a time zone", () => {
  const inZone = (cronExpression: string, timeZone: string) => ({ cronExpression, timeZone });
  const berlin = (cronExpression: string) => inZone(cronExpression, "Europe/Berlin");
  /** Returns the next instants in short form, such as 28T01:30. */
  const following = (schedule: Schedule, from: string) =>
    upcomingInstants(schedule, at(from)).map((ms) => new Date(ms).toISOString().slice(8, 16));

  test.each(["Nowhere/Land", "Mars", "../x"])("that is none is refused: %s", (timeZone) => {
    const refused = () => requireValidSchedule(inZone("0 9 * * *", timeZone), START_MS, "triggers[0].time");
    expect(refused).toThrow(
      expect.objectContaining({
        reason: ErrorReason.VALUE_UNUSABLE,
        metadata: { field: "triggers[0].time.timeZone" },
        message: expect.stringContaining("IANA"),
      }),
    );
  });

  test("is what an expression is read in, in summer and in winter", () => {
    expect(nextInstant(berlin("0 9 * * *"), at("2027-01-05T00:00:00Z"))).toBe(at("2027-01-05T08:00:00Z"));
    expect(nextInstant(berlin("0 9 * * *"), at("2027-07-05T00:00:00Z"))).toBe(at("2027-07-05T07:00:00Z"));
    const date = inZone("0 0 1 1 *", "Pacific/Kiritimati");
    expect(nextInstant(date, at("2026-12-31T00:00:00Z"))).toBe(at("2026-12-31T10:00:00Z"));
  });

  // Clocks in Berlin go from 02:00 to 03:00 at 01:00 UTC on 28 March 2027.
  test.each([
    ["30 2 * * *", ["28T01:00", "29T00:30", "30T00:30", "31T00:30", "01T00:30"]],
    ["0 2 * * *", ["28T01:00", "29T00:00", "30T00:00", "31T00:00", "01T00:00"]],
    ["0,30 2 * * *", ["29T00:00", "29T00:30", "30T00:00", "30T00:30", "31T00:00"]],
    ["30 1-3 * * *", ["28T00:30", "28T01:30", "28T23:30", "29T00:30", "29T01:30"]],
    ["*/30 * * * *", ["27T23:30", "28T00:00", "28T00:30", "28T01:00", "28T01:30"]],
  ])("of which an hour is skipped: %s", (expression, instants) => {
    expect(following(berlin(expression), "2027-03-27T23:00:00Z")).toEqual(instants);
  });

  // Clocks in Berlin go from 03:00 to 02:00 at 01:00 UTC on 31 October 2027.
  test.each([
    ["30 2 * * *", ["31T00:30", "01T01:30", "02T01:30", "03T01:30", "04T01:30"]],
    ["0,30 2 * * *", ["31T00:00", "31T00:30", "31T01:00", "31T01:30", "01T01:00"]],
    ["0 * * * *", ["31T00:00", "31T01:00", "31T02:00", "31T03:00", "31T04:00"]],
  ])("of which an hour is repeated: %s", (expression, instants) => {
    expect(following(berlin(expression), "2027-10-30T23:30:00Z")).toEqual(instants);
  });

  test("has the same instants looking back after a downtime as looking ahead", () => {
    const expressions = ["30 2 * * *", "*/20 2 * * *", "0 * * * *", "15 1-3 * * 7", "0 0 * * *"];
    const zones = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Havana", ""];
    fc.assert(
      fc.property(
        fc.constantFrom(...expressions),
        fc.constantFrom(...zones),
        fc.integer({ min: START_MS, max: END_MS }),
        fc.integer({ min: 1, max: 36 * 60 }),
        (expression, timeZone, fromMs, minutes) => {
          const schedule = inZone(expression, timeZone);
          const nowMs = fromMs + minutes * MINUTE_MS;
          const instants: number[] = [];
          let instant = nextInstant(schedule, fromMs);
          while (instant !== undefined && instant <= nowMs) {
            instants.push(instant);
            instant = nextInstant(schedule, instant);
          }
          const latest = instants.at(-1);
          expect(findDueInstant(schedule, fromMs, nowMs)).toEqual(
            latest && { instantMs: latest, missed: instants.length - 1 },
          );
        },
      ),
      replay,
    );
  });
});

describe("the instants that are shown", () => {
  test.each([
    ["0 0 1 * *", 5],
    ["0 0 1 1 *", 1],
    ["0 0 1 1,6 *", 2],
    ["0 0 29 2 *", 1],
  ])("of %s are the next five, those beyond a year but the first left out", (expression, count) => {
    expect(upcomingInstants(utc(expression), START_MS)).toHaveLength(count);
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

import { describe, expect, test } from "@jest/globals";
import {
  formatTraceparent,
  isAmongSampled,
  parseTraceparent,
  partSpanId,
  spanIdOf,
  stepSpanId,
  traceIdOf,
} from "./trace-context.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";
const ID = "019a0000-1234-7abc-8def-0123456789ab";

describe("a traceparent", () => {
  test("is read and written", () => {
    const parent = { traceId: TRACE, parentSpanId: SPAN, sampled: true };
    expect(parseTraceparent(`00-${TRACE}-${SPAN}-01`)).toEqual(parent);
    expect(parseTraceparent(formatTraceparent(parent, SPAN))).toEqual(parent);
    expect(parseTraceparent(`00-${TRACE}-${SPAN}-00`)?.sampled).toBe(false);
    // Only the first flag is known.
    expect(parseTraceparent(`00-${TRACE}-${SPAN}-02`)?.sampled).toBe(false);
    expect(parseTraceparent(`00-${TRACE}-${SPAN}-03`)?.sampled).toBe(true);
  });

  test("of a later version may say more, of this one not", () => {
    expect(parseTraceparent(`01-${TRACE}-${SPAN}-01-more`)?.traceId).toBe(TRACE);
    expect(parseTraceparent(`01-${TRACE}-${SPAN}-01`)?.traceId).toBe(TRACE);
    expect(parseTraceparent(`00-${TRACE}-${SPAN}-01-more`)).toBeUndefined();
    expect(parseTraceparent(`01-${TRACE}-${SPAN}-01more`)).toBeUndefined();
  });

  test.each([
    ["", "nothing"],
    [`ff-${TRACE}-${SPAN}-01`, "no version"],
    [`00-${"0".repeat(32)}-${SPAN}-01`, "a trace of zeros"],
    [`00-${TRACE}-${"0".repeat(16)}-01`, "a span of zeros"],
    [`00-${TRACE.toUpperCase()}-${SPAN}-01`, "upper case"],
    [`00-${TRACE.slice(1)}-${SPAN}-01`, "31 digits"],
    [`00-${TRACE}-${SPAN}`, "no flags"],
    [` 00-${TRACE}-${SPAN}-01`, "a blank"],
    [`00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`, "two"],
    [`01-${TRACE}-${SPAN}-01-${"x".repeat(257)}`, "too much more"],
  ])("%s counts as none: %s", (text) => {
    expect(parseTraceparent(text)).toBeUndefined();
  });
});

test("ids follow from the ids of what they are of", () => {
  expect(traceIdOf(ID)).toBe("019a000012347abc8def0123456789ab");
  expect(spanIdOf(ID)).toBe("8def0123456789ab");
  const steps = Array.from({ length: 50 }, (_, index) => stepSpanId(ID, index));
  expect(new Set([...steps, partSpanId(ID, "turn a"), spanIdOf(ID)]).size).toBe(52);
  for (const step of steps) expect(step).toMatch(/^[0-9a-f]{16}$/);
  expect(stepSpanId(ID, 3)).toBe(steps[3]);
});

test("a share of the traces is sent, by their last 52 bits", () => {
  const half = (digit: string) => isAmongSampled(`${"f".repeat(19)}${digit}${"0".repeat(12)}`, 0.5);
  expect([half("7"), half("8")]).toEqual([true, false]);
  expect(isAmongSampled("f".repeat(32), 1)).toBe(true);
  expect(isAmongSampled("0".repeat(32), 0)).toBe(false);
});

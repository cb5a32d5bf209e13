import { expect, test } from "@jest/globals";
import { SpanMeasures } from "../metrics/span-measures.ts";
import type { Span } from "./span.ts";
import { SpanQueue } from "./span-queue.ts";

const span = (name: string): Span => ({
  ...{ traceId: "1".repeat(32), spanId: "2".repeat(16), parentSpanId: "", name },
  ...{ start: 0, end: 1, attributes: {}, hasFailed: false },
});
const many = (count: number) => Array.from({ length: count }, (_, index) => span(String(index)));

function queueOf(send: (spans: readonly Span[]) => Promise<void>, maxWaiting?: number) {
  const measures = new SpanMeasures();
  const failures: unknown[] = [];
  const onFailure = (error: unknown) => void failures.push(error);
  const options = { measures, send, onFailure, ...(maxWaiting !== undefined && { maxWaiting }) };
  return { queue: new SpanQueue(options), measures, failures };
}

test("spans are sent in their order, by the 512", async () => {
  const sent: string[][] = [];
  const { queue, measures } = queueOf(async (spans) => void sent.push(spans.map(({ name }) => name)));
  queue.add(many(511));
  expect(sent).toEqual([]);
  queue.add(many(2));
  await queue.close();
  expect(sent.map(({ length }) => length)).toEqual([512, 1]);
  expect(sent.flat()).toEqual([...many(511), ...many(2)].map(({ name }) => name));
  expect([measures.sent, measures.dropped]).toEqual([513, { queue: 0, export: 0 }]);
});

test("what is past the bound is dropped and counted, at n - 1, n and n + 1", async () => {
  for (const [added, dropped] of [
    [3, 0],
    [4, 0],
    [5, 1],
  ] as const) {
    const { queue, measures } = queueOf(async () => {}, 4);
    queue.add(many(added));
    await queue.close();
    expect([measures.sent, measures.dropped.queue]).toEqual([added - dropped, dropped]);
  }
});

test("what a collector does not take is dropped and counted, and what comes after is sent", async () => {
  let isAway = true;
  const { queue, measures, failures } = queueOf(async () => {
    if (isAway) throw new Error("away");
  });
  queue.add(many(512));
  isAway = true;
  await new Promise((resolve) => setImmediate(resolve));
  expect([measures.dropped.export, failures]).toEqual([512, [new Error("away")]]);
  isAway = false;
  queue.add(many(1));
  await queue.close();
  expect(measures.sent).toBe(1);
});

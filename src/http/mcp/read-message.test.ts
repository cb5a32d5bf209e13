import { PassThrough } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { expect, test } from "@jest/globals";
import { BodyBudget } from "../body/body-budget.ts";
import type { HttpRequest } from "../connection/listener.ts";
import { readMessage } from "./read-message.ts";

test("a message that stops coming gives way to those of others at once", async () => {
  let now = 0;
  const budget = new BodyBudget({ callerBytes: 40_000, totalBytes: 40_000, now: () => now });
  const req = Object.assign(new PassThrough(), { headers: { "content-type": "application/json" } });
  const hold = budget.hold("one");
  const reading = expect(readMessage(req as unknown as HttpRequest, hold)).rejects.toThrow(
    "send this one again",
  );
  req.write(Buffer.alloc(20_000));
  while (hold.bytes === 0) await setImmediate();
  // Nothing more has arrived for long enough that the body counts as slow.
  now = 60_000;
  const other = budget.hold("another");
  other.arriving();
  other.set(30_000);
  await reading;
  expect([hold.bytes, other.bytes]).toEqual([0, 30_000]);
});

import { createContextValues } from "@connectrpc/connect";
import { describe, expect, test } from "@jest/globals";
import type { Caller } from "../../domain/identity/caller.ts";
import { callerKey } from "../../services/call/call.ts";
import { createRevocationMonitor, revokedKey } from "../../services/call/revocation-monitor.ts";
import { createStreamSlots } from "../../services/call/stream-slots.ts";
import { revokeStreams } from "./revoked-streams.ts";

const blocked = new Error("blocked");
const LIMITS = { perToken: 1, perOrganization: 1, perServer: 1 };

/** A stream of the answers behind the interceptor, whose caller can be cut off. */
async function streamOf(answers: (signal: AbortSignal | undefined) => AsyncIterable<string>) {
  let refusal: Error | undefined;
  const signals = createRevocationMonitor(async () => refusal);
  const contextValues = createContextValues().set(callerKey, { tokenId: "t", role: "member" } as Caller);
  const req = {
    stream: true,
    contextValues,
    signal: new AbortController().signal,
    service: { typeName: "service.v1.EventService" },
    method: { name: "WatchEvents" },
  };
  const next = async () => ({ stream: true, message: answers(contextValues.get(revokedKey)) });
  const res = await revokeStreams(signals, createStreamSlots(LIMITS))(next as never)(req as never);
  return {
    reading: (res.message as AsyncIterable<string>)[Symbol.asyncIterator](),
    async cutOff() {
      refusal = blocked;
      await signals.check();
    },
  };
}

describe("a stream whose caller is cut off", () => {
  test("ends with the reason while it waits for the next message", async () => {
    const { reading, cutOff } = await streamOf(async function* () {
      yield "first";
      await new Promise(() => undefined);
    });
    expect(await reading.next()).toEqual({ done: false, value: "first" });
    const ended = reading.next().catch((error) => error);
    await cutOff();
    expect(await ended).toBe(blocked);
    expect(await reading.next()).toEqual({ done: true, value: undefined });
  });

  test("sends no message that was ready already", async () => {
    const { reading, cutOff } = await streamOf(async function* () {
      for (;;) yield "another";
    });
    await reading.next();
    await cutOff();
    await expect(reading.next()).rejects.toBe(blocked);
  });

  test("asks the operation for nothing more", async () => {
    let asked = 0;
    const { reading, cutOff } = await streamOf(async function* () {
      for (;;) {
        asked += 1;
        yield "another";
      }
    });
    await reading.next();
    await cutOff();
    await expect(reading.next()).rejects.toBe(blocked);
    expect(asked).toBe(1);
  });

  test("tells the operation, which can leave what it waits for", async () => {
    const { promise: left, resolve } = Promise.withResolvers<void>();
    const { reading, cutOff } = await streamOf(async function* (signal) {
      yield "first";
      await new Promise((wake) => signal?.addEventListener("abort", wake));
      resolve();
    });
    await reading.next();
    const ended = reading.next().catch((error) => error);
    await cutOff();
    await left;
    expect(await ended).toBe(blocked);
  });
});

test("a stream whose caller may go on ends as its operation does", async () => {
  const { reading } = await streamOf(async function* () {
    yield "only";
  });
  expect(await reading.next()).toEqual({ done: false, value: "only" });
  expect(await reading.next()).toEqual({ done: true, value: undefined });
});

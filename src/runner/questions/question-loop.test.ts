import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import {
  type AnswerRequestRequest,
  AnswerRequestRequestSchema,
  AnswerRequestResponseSchema,
  EnvironmentQuestionSchema,
  WatchRequestsResponseSchema,
} from "#gen/runner/v1/environment_question_pb.js";
import { EnvironmentPush_Stage as Stage } from "#gen/service/v1/environment_push_pb.js";
import { SILENT_MS } from "../../domain/runner/runner-questions.ts";
import { runQuestionLoop } from "./question-loop.ts";

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

test("an answer whose progress was reported has as long again, however little was left when it was begun", async () => {
  const ending = new AbortController();
  const question = create(EnvironmentQuestionSchema, {
    id: "the question",
    expiresAt: timestampFromMs(Date.now() + 1_000),
  });
  let made: AbortSignal | undefined;
  const loop = runQuestionLoop({
    client: {
      async *watchRequests() {
        yield create(WatchRequestsResponseSchema, { question });
        await new Promise((resolve) => ending.signal.addEventListener("abort", resolve));
      },
      answerRequest: async () => create(AnswerRequestResponseSchema),
    },
    instanceId: "the first",
    answer(_, signal, tell) {
      made = signal;
      tell({ stage: Stage.SENDING }, "sending");
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
    renew: () => undefined,
    log: { warn: () => undefined, error: () => undefined },
    signal: ending.signal,
  });
  await jest.advanceTimersByTimeAsync(SILENT_MS - 1_000);
  expect(made?.aborted).toBe(false);
  await jest.advanceTimersByTimeAsync(SILENT_MS);
  expect(made?.aborted).toBe(true);
  ending.abort();
  await loop;
});

test("a fault of the runner itself is in its log, and the answer says so", async () => {
  const ending = new AbortController();
  const question = create(EnvironmentQuestionSchema, { id: "q", environmentId: "e" });
  const logged: object[] = [];
  const { promise: answered, resolve } = Promise.withResolvers<AnswerRequestRequest["answer"]>();
  const loop = runQuestionLoop({
    client: {
      async *watchRequests() {
        yield create(WatchRequestsResponseSchema, { question });
        await new Promise((end) => ending.signal.addEventListener("abort", end));
      },
      async answerRequest(request) {
        resolve(create(AnswerRequestRequestSchema, request).answer);
        return create(AnswerRequestResponseSchema);
      },
    },
    instanceId: "the first",
    answer: async () => {
      throw new TypeError("a fault");
    },
    renew: () => undefined,
    log: { warn: () => undefined, error: (entry: object) => logged.push(entry) },
    signal: ending.signal,
  });
  await jest.advanceTimersByTimeAsync(0);
  expect(await answered).toMatchObject({ case: "failure", value: { reason: "runner_fault" } });
  expect(logged).toMatchObject([{ question: "q", environment: "e", err: { message: "a fault" } }]);
  ending.abort();
  await loop;
});

test("the leases that the server names are renewed", async () => {
  const ending = new AbortController();
  const renewed: (readonly string[])[] = [];
  const loop = runQuestionLoop({
    client: {
      async *watchRequests() {
        yield create(WatchRequestsResponseSchema, { leaseIds: ["one", "two"] });
        await new Promise((end) => ending.signal.addEventListener("abort", end));
      },
      answerRequest: async () => create(AnswerRequestResponseSchema),
    },
    instanceId: "the first",
    answer: () => Promise.reject(new Error("nobody asks")),
    renew: (leaseIds) => renewed.push(leaseIds),
    log: { warn: () => undefined, error: () => undefined },
    signal: ending.signal,
  });
  await jest.advanceTimersByTimeAsync(0);
  expect(renewed).toEqual([["one", "two"]]);
  ending.abort();
  await loop;
});

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type AnswerRequestRequestSchema,
  type EnvironmentQuestion,
  WatchRequestsRequestSchema,
} from "#gen/runner/v1/environment_question_pb.js";
import type { EnvironmentPush_ProgressSchema as ProgressSchema } from "#gen/service/v1/environment_push_pb.js";
import { SILENT_MS } from "../../domain/runner/runner-questions.ts";
import { Secrets } from "../../domain/secrets.ts";
import type { Log } from "../../log.ts";
import { backOffMs, pause } from "../protocol/back-off.ts";
import { CALL_MS, classifyFailure, isUnknownOperation, type WorkClient } from "../protocol/connection.ts";
import { logFailure } from "../protocol/failure-report.ts";

/** The content of an answer: a failure, or the result for the kind of question. */
export type Answer = NonNullable<MessageInitShape<typeof AnswerRequestRequestSchema>["answer"]>;

/** Receives the progress of an answer. `words` must change whenever there is progress. */
export type TellProgress = (progress: MessageInitShape<typeof ProgressSchema>, words: string) => void;

/** Answers a question. The signal is aborted when nobody waits for the answer. @throws WorkFailure */
export type AnswerQuestion = (
  question: EnvironmentQuestion,
  signal: AbortSignal,
  tell: TellProgress,
) => Promise<Answer>;

export interface QuestionLoopOptions {
  readonly client: Pick<WorkClient, "watchRequests" | "answerRequest">;
  /** The runner's instance. */
  readonly instanceId: string;
  readonly answer: AnswerQuestion;
  /** Renews those of these leases that the runner holds. */
  readonly renew: (leaseIds: readonly string[]) => void;
  readonly log: Pick<Log, "warn" | "error">;
  /** Aborted when the runner ends. */
  readonly signal: AbortSignal;
}

/**
 * Time without a message after which the stream is reopened (contract, WatchRequestsResponse). The server sends a
 * heartbeat every 15 s.
 */
const SILENCE_MS = 45_000;
/** Minimum time between two streams, for a server that ends each stream at once. */
const MIN_STREAM_MS = 1_000;
/** Interval at which new progress is reported. */
const PROGRESS_MS = 2_000;
/** Retry interval for a server of an earlier release, which may be upgraded. */
const UNKNOWN_RETRY_MS = 60_000;

/**
 * Answers people's questions about this runner's environments until the runner ends, and renews the leases that the
 * server names. Answers questions concurrently; the server limits their number. A question that arrives again while its
 * answer is in progress is ignored.
 */
export async function runQuestionLoop(options: QuestionLoopOptions): Promise<void> {
  const { instanceId, log, signal } = options;
  // A server that assigns no instance is of an earlier release, which does not know questions.
  if (instanceId === "") return;
  const answering = new Map<string, Promise<void>>();
  let failures = 0;
  while (!signal.aborted) {
    const openedAt = performance.now();
    try {
      await readStream(options, answering, () => {
        failures = 0;
      });
      await pause(MIN_STREAM_MS - (performance.now() - openedAt), signal);
    } catch (error) {
      if (signal.aborted) break;
      if (isUnknownOperation(error)) {
        await pause(UNKNOWN_RETRY_MS, signal);
        continue;
      }
      failures++;
      const problem = (error as Error).message;
      if (failures > 1) log.warn({ problem }, "questions could not be listened to; trying again");
      await pause(backOffMs(failures), signal);
    }
  }
  await Promise.allSettled(answering.values());
}

/** Reads a stream to its end. @param onSign called for each message from the server */
async function readStream(
  options: QuestionLoopOptions,
  answering: Map<string, Promise<void>>,
  onSign: () => void,
): Promise<void> {
  const { client, instanceId, renew, signal } = options;
  const silent = new AbortController();
  const timer = setTimeout(() => silent.abort(new Error("the server fell silent")), SILENCE_MS);
  try {
    const request = create(WatchRequestsRequestSchema, { instanceId });
    const either = AbortSignal.any([signal, silent.signal]);
    for await (const { question, leaseIds } of client.watchRequests(request, { signal: either })) {
      timer.refresh();
      onSign();
      renew(leaseIds);
      if (!question || answering.has(question.id)) continue;
      const answered = respondTo(options, question).finally(() => answering.delete(question.id));
      answering.set(question.id, answered);
    }
  } finally {
    clearTimeout(timer);
  }
}

/** Answers a question. Never rejects. */
async function respondTo(options: QuestionLoopOptions, question: EnvironmentQuestion): Promise<void> {
  const { client, instanceId, answer, log, signal: ending } = options;
  const { id, environmentId, expiresAt } = question;
  const leftMs = expiresAt ? timestampMs(expiresAt) - Date.now() : CALL_MS;
  const over = new AbortController();
  const end = () => over.abort(new Error("nobody waits any more"));
  // Clocks differ between machines, so a runner whose clock is ahead still gets time to answer.
  let timer = setTimeout(end, Math.max(CALL_MS, leftMs));
  // The server extends its deadline by the same time. The original one may be short after a restart of the runner.
  const putOff = () => {
    clearTimeout(timer);
    timer = setTimeout(end, SILENT_MS);
  };
  const signal = AbortSignal.any([ending, over.signal]);
  const { tell, stop } = createTeller(options, question, { signal, putOff, end });
  try {
    const given = await answer(question, signal, tell).catch((error: Error): Answer => {
      if (signal.aborted) return { case: undefined };
      return {
        case: "failure",
        value: logFailure(log, { question: id, environment: environmentId }, error, new Secrets()),
      };
    });
    stop();
    if (given.case === undefined) return;
    for (let failures = 1; ; failures++) {
      try {
        const request = { questionId: id, instanceId, answer: given };
        await client.answerRequest(request, { timeoutMs: CALL_MS, signal });
        return;
      } catch (error) {
        // Nobody waits for the answer any more, or the token is invalid, which the work finds out.
        if (signal.aborted || classifyFailure(error) !== "transient") return;
        log.warn(
          { environment: environmentId, problem: (error as Error).message },
          "an answer was not taken",
        );
      }
      await pause(backOffMs(failures), signal);
    }
  } finally {
    clearTimeout(timer);
  }
}

/** The lifetime of an answer in progress. */
interface Answering {
  readonly signal: AbortSignal;
  /** Extends its deadline. */
  readonly putOff: () => void;
  /** Aborts it. */
  readonly end: () => void;
}

/** Returns a reporter that sends the latest progress to the server at intervals, and nothing for a quick answer. */
function createTeller(
  { client, instanceId }: Pick<QuestionLoopOptions, "client" | "instanceId">,
  { id: questionId }: EnvironmentQuestion,
  { signal, putOff, end }: Answering,
): { readonly tell: TellProgress; readonly stop: () => void } {
  let reported = "";
  let next: { readonly value: Parameters<TellProgress>[0]; readonly words: string } | undefined;
  let isStopped = false;
  let timer: NodeJS.Timeout;
  const send = async () => {
    const given = next;
    if (given && given.words !== reported && !signal.aborted) {
      reported = given.words;
      const answer = { case: "progress", value: given.value } as const;
      await client
        .answerRequest({ questionId, instanceId, answer }, { timeoutMs: CALL_MS, signal })
        .then(putOff, (error) => {
          // If the server was unreachable, the next attempt may succeed.
          if (ConnectError.from(error).code === Code.NotFound) end();
          else reported = "";
        });
    }
    if (!isStopped) timer = setTimeout(send, PROGRESS_MS);
  };
  timer = setTimeout(send, PROGRESS_MS);
  return {
    tell(value, words) {
      next = { value, words };
    },
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}

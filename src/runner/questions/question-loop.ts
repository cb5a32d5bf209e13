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

/** The content of an answer: a failure, or what belongs to the question. */
export type Answer = NonNullable<MessageInitShape<typeof AnswerRequestRequestSchema>["answer"]>;

/** Receives how far an answer is, with words that change as long as there is progress. */
export type TellProgress = (progress: MessageInitShape<typeof ProgressSchema>, words: string) => void;

/** Answers a question; never for one whose signal is aborted, when nobody waits any more. @throws WorkFailure */
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
  readonly log: Pick<Log, "warn" | "error">;
  /** Aborted when the runner ends. */
  readonly signal: AbortSignal;
}

/** Time without a sign of life after which another stream is opened (contract, WatchRequestsResponse): the server sends one each 15 s. */
const SILENCE_MS = 45_000;
/** A server that ends each stream at once is not asked again at once. */
const MIN_STREAM_MS = 1_000;
/** Interval at which progress is reported, if there is any. */
const PROGRESS_MS = 2_000;
/** Interval between attempts at a server of an earlier release, which may be replaced by one of this. */
const UNKNOWN_RETRY_MS = 60_000;

/**
 * Answers what people ask about the environments on this runner until it ends. Questions are answered at the
 * same time; the server limits how many there are. One that comes again while it is being answered
 * is not begun again.
 */
export async function runQuestionLoop(options: QuestionLoopOptions): Promise<void> {
  const { instanceId, log, signal } = options;
  // The server is of an earlier release, which knows no questions either.
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

/** Reads one stream to its end. @param onSign called whenever the server is heard of */
async function readStream(
  options: QuestionLoopOptions,
  answering: Map<string, Promise<void>>,
  onSign: () => void,
): Promise<void> {
  const { client, instanceId, signal } = options;
  const silent = new AbortController();
  const timer = setTimeout(() => silent.abort(new Error("the server fell silent")), SILENCE_MS);
  try {
    const request = create(WatchRequestsRequestSchema, { instanceId });
    const either = AbortSignal.any([signal, silent.signal]);
    for await (const { question } of client.watchRequests(request, { signal: either })) {
      timer.refresh();
      onSign();
      if (!question || answering.has(question.id)) continue;
      const answered = respondTo(options, question).finally(() => answering.delete(question.id));
      answering.set(question.id, answered);
    }
  } finally {
    clearTimeout(timer);
  }
}

/** Answers one question; never rejects. */
async function respondTo(options: QuestionLoopOptions, question: EnvironmentQuestion): Promise<void> {
  const { client, instanceId, answer, log, signal: ending } = options;
  const { id, environmentId, expiresAt } = question;
  const leftMs = expiresAt ? timestampMs(expiresAt) - Date.now() : CALL_MS;
  const over = new AbortController();
  const end = () => over.abort(new Error("nobody waits any more"));
  // Clocks of machines differ: one that is ahead answers all the same.
  let timer = setTimeout(end, Math.max(CALL_MS, leftMs));
  // The server has put its end off as far; what was left may have been little, for a runner that was started again.
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
        // Nobody waits for it any more, or the token is not valid: the work finds out.
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

/** The life of an answer that is being made. */
interface Answering {
  readonly signal: AbortSignal;
  /** Puts off its end. */
  readonly putOff: () => void;
  /** Ends it. */
  readonly end: () => void;
}

/** Returns what tells the server of progress: the newest, now and then, and nothing of a quick answer. */
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
          // Where the server cannot be reached, the next one may.
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

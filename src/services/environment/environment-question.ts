import { create } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type AnswerRequestRequest,
  AnswerRequestResponseSchema,
  type EnvironmentQuestion,
  EnvironmentQuestionSchema,
} from "#gen/runner/v1/environment_question_pb.js";
import { type Environment, EnvironmentPhase as Phase } from "#gen/service/v1/environment_pb.js";
import type { EnvironmentPush_Progress } from "#gen/service/v1/environment_push_pb.js";
import { type DomainError, notFound, shuttingDown, unauthenticated } from "../../domain/error.ts";
import { requireCurrentInstance } from "../../domain/runner/runner-heartbeat.ts";
import {
  endAfterProgress,
  environmentUnreachable,
  listensToQuestions,
  questionFailed,
  requireRoomForQuestion,
} from "../../domain/runner/runner-questions.ts";
import { requireTimestampInRange } from "../../domain/timestamp-range.ts";
import { findEnvironment } from "../../store/environment/environment.ts";
import {
  findAskers,
  findQuestion,
  insertQuestion,
  recordAnswer,
  recordProgress,
  removeQuestion,
  type StoredQuestion,
} from "../../store/environment/environment-question.ts";
import { findStoredRunner } from "../../store/runner/runner-life.ts";
import { type Scope, SYSTEM, type WriteTransaction, within } from "../../store/store.ts";
import { callerOf, writeAsCaller, writePartAsCaller } from "../call/call.ts";
import { createNotifier } from "../call/notifier.ts";
import type { StreamDependencies } from "../call/stream-dependencies.ts";

/** The dependencies of questions. */
export type QuestionDependencies = Pick<StreamDependencies, "store" | "now" | "draining">;

/** The caller that waits for the answer. */
export interface Asker {
  readonly scope: Scope;
  /** Id of the subject whose limit the question counts towards. */
  readonly id: string;
  /** Aborted when nobody waits for the answer any longer. */
  readonly signal: AbortSignal;
  /** Time left to wait, in milliseconds; undefined without a limit. */
  readonly timeoutMs: number | undefined;
  /** Runs the transaction that stores the question. */
  write<T>(fn: (tx: WriteTransaction) => Promise<T>): Promise<T>;
}

/** Returns the caller of an operation as an asker. The write that asks checks its access again. */
export function askerOf({ store }: Pick<QuestionDependencies, "store">, ctx: HandlerContext): Asker {
  const caller = callerOf(ctx);
  return {
    scope: caller,
    id: caller.subject.id,
    signal: ctx.signal,
    timeoutMs: ctx.timeoutMs(),
    write: (fn) => writePartAsCaller(store, ctx, fn),
  };
}

type Answer = AnswerRequestRequest["answer"];
/** Kinds of answers, without failures and progress. */
export type AnswerCase = Exclude<Answer["case"], undefined | "failure" | "progress">;
export type AnswerOf<Case extends AnswerCase> = Extract<Answer, { readonly case: Case }>["value"];

/** A question about an environment, and the kind of answer it expects. */
export interface RunnerQuestion<Case extends AnswerCase> {
  /** Id of the environment; empty when the question is not about one. */
  readonly environmentId: string;
  readonly question: EnvironmentQuestion["question"];
  readonly answer: Case;
  /** Maximum time to wait for the answer, in milliseconds. */
  readonly waitMs: number;
  /**
   * True if the runner continues after the caller has disconnected: the question counts towards the limit until it is
   * answered or ends.
   */
  readonly outlivesCaller?: boolean;
}

/** The runner that is asked, and the errors for when it does not answer. */
export interface QuestionTarget {
  /** Returns the runner's id. @throws DomainError unless it may be asked one more question */
  find(tx: WriteTransaction, asker: Asker): Promise<string>;
  unreachable(cause: "runner_silent" | "no_answer"): DomainError;
  /** Returns the error for a failure that the runner reports instead of an answer. */
  failed(failure: { readonly reason: string; readonly message: string }): DomainError;
}

/**
 * Asks the runner of an environment, on whichever server its stream is open, and waits for the answer.
 *
 * @throws DomainError ENVIRONMENT_UNREACHABLE, immediately if the runner does not listen; TOO_MANY_QUESTIONS;
 * UNAVAILABLE when the server drains
 */
export function askRunner<Case extends AnswerCase>(
  deps: QuestionDependencies,
  asker: Asker,
  asked: RunnerQuestion<Case>,
): Promise<AnswerOf<Case>> {
  const runner: QuestionTarget = {
    find: (tx) => findRunnerToAsk(tx, asker, asked.environmentId),
    unreachable: environmentUnreachable,
    failed: questionFailed,
  };
  return askGivenRunner(deps, asker, runner, asked);
}

/**
 * Asks a runner, on whichever server its stream is open, and waits for the answer.
 *
 * @throws DomainError UNAVAILABLE when the server drains; those of `runner`
 */
export async function askGivenRunner<Case extends AnswerCase>(
  { store, now, draining }: QuestionDependencies,
  asker: Asker,
  runner: QuestionTarget,
  { environmentId, question, answer: expected, waitMs, outlivesCaller = false }: RunnerQuestion<Case>,
): Promise<AnswerOf<Case>> {
  const { scope, signal } = asker;
  const endsAt = now() + (outlivesCaller ? waitMs : Math.min(waitMs, asker.timeoutMs ?? waitMs));
  const id = await asker.write(async (tx) => {
    const runnerId = await runner.find(tx, asker);
    const id = tx.newId();
    const expiresAt = timestampFromMs(endsAt);
    const body = create(EnvironmentQuestionSchema, { id, environmentId, expiresAt, question });
    await insertQuestion(tx, scope, body, { runnerId, askerId: asker.id, endsAt });
    return id;
  });
  const notifier = createNotifier((wake) => store.onChange(id, wake), [signal, draining]);
  let isOpen = true;
  try {
    for (;;) {
      const changed = notifier.next(Math.max(0, endsAt - now()));
      signal.throwIfAborted();
      if (draining.aborted) throw shuttingDown();
      // Taken before the row is read, so that an answer that arrived in time is seen.
      const at = now();
      const asked = await findQuestion(store.reader, scope, id);
      isOpen = asked !== undefined && !asked.answer && at < endsAt;
      // The runner was removed.
      if (!asked) throw runner.unreachable("runner_silent");
      if (asked.answer) return expectAnswer(asked.answer, expected, runner.failed);
      if (at >= endsAt) throw runner.unreachable("no_answer");
      await changed;
    }
  } finally {
    notifier.close();
    // The job removes questions that the runner may still answer, and those for which this fails.
    if (!outlivesCaller || !isOpen) {
      const remove = (tx: WriteTransaction) => removeQuestion(tx, scope, id);
      await store.write(SYSTEM, "question/ended", remove, within(scope)).catch(() => undefined);
    }
  }
}

/**
 * Returns the runner of an environment, if it may be asked one more question.
 * @throws DomainError TOO_MANY_QUESTIONS; ENVIRONMENT_UNREACHABLE unless it listens
 */
export async function findRunnerToAsk(
  tx: WriteTransaction,
  { scope, id }: Asker,
  environmentId: string,
): Promise<string> {
  const runnerId = await findListeningRunner(tx, scope, environmentId);
  requireRoomForQuestion(await findAskers(tx.db, scope, runnerId, tx.now), id);
  return runnerId;
}

/** Returns the runner of an environment. @throws DomainError ENVIRONMENT_UNREACHABLE unless it listens */
async function findListeningRunner(
  tx: WriteTransaction,
  scope: Scope,
  environmentId: string,
): Promise<string> {
  const environment = await findEnvironment(tx.db, scope, environmentId);
  const runnerId = environment && isThere(environment) ? environment.metadata?.runnerId : undefined;
  if (!runnerId) throw environmentUnreachable("environment_gone");
  const runner = await findStoredRunner(tx.db, scope, runnerId);
  if (!runner || !listensToQuestions(runner, tx.now)) throw environmentUnreachable("runner_silent");
  return runnerId;
}

function isThere({ spec, status }: Environment): boolean {
  const phases = [spec?.desiredPhase, status?.phase];
  return !phases.some((phase) => phase === Phase.DELETING || phase === Phase.DELETED);
}

/**
 * Returns the content of an answer, which must be of the kind that the question expects.
 *
 * @param failed returns the error for a failure that the runner reports
 * @throws DomainError the error of `failed`
 */
export function expectAnswer<Case extends AnswerCase>(
  { answer }: AnswerRequestRequest,
  expected: Case,
  failed: QuestionTarget["failed"] = questionFailed,
): AnswerOf<Case> {
  if (answer.case === "failure") throw failed(answer.value);
  if (answer.case === expected) return answer.value as AnswerOf<Case>;
  throw failed({ reason: "answer_unfit", message: "its runner gave an answer to another question" });
}

/**
 * Stores a runner's answer or its progress. Only the first answer counts.
 * @throws DomainError NOT_FOUND when nobody waits for it any longer; IN_USE for an instance that was replaced;
 * VALUE_UNUSABLE for a time out of range
 */
export function answerRequest(
  { store }: QuestionDependencies,
  req: AnswerRequestRequest,
  ctx: HandlerContext,
) {
  requireFileTimes(req.answer);
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const runner = await findStoredRunner(tx.db, caller, caller.subject.id);
    if (!runner) throw unauthenticated();
    requireCurrentInstance(runner, req.instanceId);
    const asked = await findQuestion(tx.db, caller, req.questionId);
    if (asked?.runnerId !== caller.subject.id || asked.endsAt <= tx.now) throw notFound("question");
    if (req.answer.case === "progress") await putOff(tx, caller, asked, req.answer.value);
    else if (!asked.answer) await recordAnswer(tx, caller, req);
    return create(AnswerRequestResponseSchema);
  });
}

/** Requires times that the response to the asker can have. @throws DomainError VALUE_UNUSABLE */
function requireFileTimes(answer: Answer): void {
  if (answer.case === "filePart")
    requireTimestampInRange("filePart.file.modifiedAt", answer.value.file?.modifiedAt);
  if (answer.case !== "fileList") return;
  for (const [index, { modifiedAt }] of answer.value.files.entries())
    requireTimestampInRange(`fileList.files[${index}].modifiedAt`, modifiedAt);
}

/** Postpones the end of a long-running question. */
async function putOff(
  tx: WriteTransaction,
  scope: Scope,
  { question, answer }: StoredQuestion,
  progress: EnvironmentPush_Progress,
): Promise<void> {
  if (answer || !question.endsAt) return;
  const end = endAfterProgress(tx.now, timestampMs(question.endsAt));
  const expiresAt = timestampFromMs(end);
  await recordProgress(tx, scope, { ...question, expiresAt, progress }, end);
}

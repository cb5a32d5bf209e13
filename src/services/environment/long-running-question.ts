import { create } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type EnvironmentQuestion,
  EnvironmentQuestionSchema,
} from "#gen/runner/v1/environment_question_pb.js";
import type { EnvironmentPush_Progress } from "#gen/service/v1/environment_push_pb.js";
import { shuttingDown } from "../../domain/error.ts";
import { environmentUnreachable, LONG_RUNNING_MS, SILENT_MS } from "../../domain/runner/runner-questions.ts";
import {
  findQuestion,
  findQuestionsOf,
  insertQuestion,
  removeQuestion,
} from "../../store/environment/environment-question.ts";
import { SYSTEM, type WriteTransaction, within } from "../../store/store.ts";
import { createNotifier } from "../call/notifier.ts";
import {
  type AnswerCase,
  type AnswerOf,
  type Asker,
  expectAnswer,
  findRunnerToAsk,
  type QuestionDependencies,
  type RunnerQuestion,
} from "./environment-question.ts";

/** Time after which the response says that the runner is still working: many proxies end a call after a minute. */
const MAX_WAIT_MS = 50_000;
/** The part of the caller's timeout that is spent waiting; the rest is for sending the response. */
const PART_OF_DEADLINE = 0.8;

/**
 * Returns when an operation stops waiting and responds that the runner is still working. The limit covers all
 * questions of the operation together.
 * @param timeoutMs time left to the caller; undefined without a limit
 */
export function waitEnd(now: number, timeoutMs: number | undefined): number {
  return now + Math.min(MAX_WAIT_MS, (timeoutMs ?? MAX_WAIT_MS) * PART_OF_DEADLINE);
}

/** The dependencies of long-running questions. */
export type LongRunningDependencies = QuestionDependencies & {
  /** When to stop waiting and respond that the runner is still working, in milliseconds since 1970 UTC. */
  readonly until: number;
};

/** The answer to a long-running question, or the progress of its runner. */
export type LongRunningAnswer<Case extends AnswerCase> =
  | { readonly isDone: true; readonly answer: AnswerOf<Case> }
  | { readonly isDone: false; readonly progress: EnvironmentPush_Progress | undefined };

/** A question that remains open as long as its runner reports progress. */
export interface LongRunningQuestion<Case extends AnswerCase>
  extends Pick<RunnerQuestion<Case>, "environmentId" | "answer"> {
  /** Returns whether another question of the asker about the same environment is the same one. */
  readonly isSame: (question: EnvironmentQuestion["question"]) => boolean;
  /** The question to ask; undefined to wait only for an earlier question. */
  readonly question: EnvironmentQuestion["question"] | undefined;
  /** True if the runner continues after the caller has disconnected. */
  readonly outlivesCaller: boolean;
}

/**
 * Asks the runner of an environment a long-running question, or waits for the answer when the asker has already asked
 * it in an earlier call. The runner continues whether or not a call waits; the answer is kept for a while for the
 * next call.
 *
 * @param runnerId the runner of the environment
 * @returns undefined if there is nothing to wait for
 * @throws DomainError as askRunner does
 */
export async function askLongRunning<Case extends AnswerCase>(
  deps: LongRunningDependencies,
  asker: Asker,
  runnerId: string,
  asked: LongRunningQuestion<Case>,
): Promise<LongRunningAnswer<Case> | undefined> {
  for (;;) {
    const id = (await findAsked(deps, asker, runnerId, asked)) ?? (await ask(asker, asked));
    if (id === undefined) return undefined;
    const lasting = await waitFor(deps, asker, id, asked);
    // Another call of the asker has received the answer, or the runner was removed.
    if (lasting) return lasting;
  }
}

async function findAsked<Case extends AnswerCase>(
  { store, now }: QuestionDependencies,
  { scope, id: askerId }: Asker,
  runnerId: string,
  { environmentId, isSame }: LongRunningQuestion<Case>,
): Promise<string | undefined> {
  // Taken before the row is read, since the end of the question may be postponed afterwards.
  const at = now();
  const all = await findQuestionsOf(store.reader, scope, { runnerId, environmentId, askerId });
  const isOpen = ({ expiresAt }: EnvironmentQuestion) => !!expiresAt && timestampMs(expiresAt) > at;
  return all.find((each) => isOpen(each) && isSame(each.question))?.id;
}

async function ask<Case extends AnswerCase>(
  asker: Asker,
  { environmentId, question }: LongRunningQuestion<Case>,
): Promise<string | undefined> {
  if (!question) return undefined;
  return asker.write(async (tx) => {
    const runnerId = await findRunnerToAsk(tx, asker, environmentId);
    const id = tx.newId();
    const endsAt = tx.now + SILENT_MS;
    const body = create(EnvironmentQuestionSchema, {
      id,
      environmentId,
      expiresAt: timestampFromMs(endsAt),
      endsAt: timestampFromMs(tx.now + LONG_RUNNING_MS),
      question,
    });
    await insertQuestion(tx, asker.scope, body, { runnerId, askerId: asker.id, endsAt });
    return id;
  });
}

/** Waits for the answer to a question. @returns undefined if the question was removed */
async function waitFor<Case extends AnswerCase>(
  { store, now, draining, until }: LongRunningDependencies,
  { scope, signal }: Asker,
  id: string,
  { answer: expected, outlivesCaller }: LongRunningQuestion<Case>,
): Promise<LongRunningAnswer<Case> | undefined> {
  const notifier = createNotifier((wake) => store.onChange(id, wake), [signal, draining]);
  const remove = () => {
    const removed = (tx: WriteTransaction) => removeQuestion(tx, scope, id);
    // If this fails, the job removes the question.
    return store.write(SYSTEM, "question/ended", removed, within(scope)).catch(() => undefined);
  };
  try {
    for (;;) {
      const changed = notifier.next(Math.max(0, until - now()));
      if (signal.aborted && !outlivesCaller) await remove();
      signal.throwIfAborted();
      if (draining.aborted) throw shuttingDown();
      // Taken before the row is read, so that an answer or progress that arrived in time is seen.
      const at = now();
      const asked = await findQuestion(store.reader, scope, id);
      if (!asked) return undefined;
      if (asked.answer) {
        await remove();
        return { isDone: true, answer: expectAnswer(asked.answer, expected) };
      }
      if (at >= asked.endsAt) {
        await remove();
        throw environmentUnreachable("no_answer");
      }
      if (at >= until) return { isDone: false, progress: asked.question.progress };
      await changed;
    }
  } finally {
    notifier.close();
  }
}

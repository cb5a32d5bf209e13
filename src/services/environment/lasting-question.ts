import { create } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type EnvironmentQuestion,
  EnvironmentQuestionSchema,
} from "#gen/runner/v1/environment_question_pb.js";
import type { EnvironmentPush_Progress } from "#gen/service/v1/environment_push_pb.js";
import { shuttingDown } from "../../domain/error.ts";
import { environmentUnreachable, LASTING_MS, SILENT_MS } from "../../domain/runner/runner-questions.ts";
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
  type Asked,
  type Asker,
  expectAnswer,
  findRunnerToAsk,
  type QuestionDependencies,
} from "./environment-question.ts";

/** Time after which the answer to a caller is that the runner goes on: proxies give a call up after a minute. */
const PATIENCE_MS = 50_000;
/** The part of the caller's own time that is waited: the rest is for the answer. */
const PART_OF_DEADLINE = 0.8;

/**
 * Returns when the answer to the caller of an operation is that the runner goes on, however many questions the operation asks.
 * @param timeoutMs that are left to the caller; undefined without a limit
 */
export function endOfPatience(now: number, timeoutMs: number | undefined): number {
  return now + Math.min(PATIENCE_MS, (timeoutMs ?? PATIENCE_MS) * PART_OF_DEADLINE);
}

/** The dependencies of questions that may last. */
export type LastingDependencies = QuestionDependencies & {
  /** When the answer to the caller is that the runner goes on, in milliseconds since 1970 UTC. */
  readonly until: number;
};

/** The answer to a question that may last, or how far its runner is. */
export type Lasting<Case extends AnswerCase> =
  | { readonly isDone: true; readonly answer: AnswerOf<Case> }
  | { readonly isDone: false; readonly progress: EnvironmentPush_Progress | undefined };

/** A question that may last for as long as its runner tells of progress. */
export interface LastingAsked<Case extends AnswerCase> extends Pick<Asked<Case>, "environmentId" | "answer"> {
  /** Tells whether another question of the asker, about the same environment, is this one. */
  readonly isSame: (question: EnvironmentQuestion["question"]) => boolean;
  /** The question to ask; undefined to wait only for one that was asked before. */
  readonly question: EnvironmentQuestion["question"] | undefined;
  /** True if the runner goes on where the caller has hung up. */
  readonly isLeft: boolean;
}

/**
 * Asks the runner of an environment something that may take long, or waits for the answer to the same question, which
 * an earlier call of the asker has left. The runner goes on whether anybody waits or not, and the answer stays for the
 * next call, for a while.
 *
 * @param runnerId the runner of the environment
 * @returns undefined where there is nothing to wait for
 * @throws DomainError as askRunner does
 */
export async function askLasting<Case extends AnswerCase>(
  deps: LastingDependencies,
  asker: Asker,
  runnerId: string,
  asked: LastingAsked<Case>,
): Promise<Lasting<Case> | undefined> {
  for (;;) {
    const id = (await findAsked(deps, asker, runnerId, asked)) ?? (await ask(asker, asked));
    if (id === undefined) return undefined;
    const lasting = await waitFor(deps, asker, id, asked);
    // Another call of the asker has taken the answer, or its runner was removed.
    if (lasting) return lasting;
  }
}

async function findAsked<Case extends AnswerCase>(
  { store, now }: QuestionDependencies,
  { scope, id: askerId }: Asker,
  runnerId: string,
  { environmentId, isSame }: LastingAsked<Case>,
): Promise<string | undefined> {
  // Before the reading: what is read may have its end put off later.
  const at = now();
  const all = await findQuestionsOf(store.reader, scope, { runnerId, environmentId, askerId });
  const isOpen = ({ expiresAt }: EnvironmentQuestion) => !!expiresAt && timestampMs(expiresAt) > at;
  return all.find((each) => isOpen(each) && isSame(each.question))?.id;
}

async function ask<Case extends AnswerCase>(
  asker: Asker,
  { environmentId, question }: LastingAsked<Case>,
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
      endsAt: timestampFromMs(tx.now + LASTING_MS),
      question,
    });
    await insertQuestion(tx, asker.scope, body, { runnerId, askerId: asker.id, endsAt });
    return id;
  });
}

/** @returns undefined where the question is gone */
async function waitFor<Case extends AnswerCase>(
  { store, now, draining, until }: LastingDependencies,
  { scope, signal }: Asker,
  id: string,
  { answer: expected, isLeft }: LastingAsked<Case>,
): Promise<Lasting<Case> | undefined> {
  const notifier = createNotifier((wake) => store.onChange(id, wake), [signal, draining]);
  const remove = () => {
    const removed = (tx: WriteTransaction) => removeQuestion(tx, scope, id);
    // Where this fails, the job removes it.
    return store.write(SYSTEM, "question/ended", removed, within(scope)).catch(() => undefined);
  };
  try {
    for (;;) {
      const changed = notifier.next(Math.max(0, until - now()));
      if (signal.aborted && !isLeft) await remove();
      signal.throwIfAborted();
      if (draining.aborted) throw shuttingDown();
      // Before the reading: what tells of progress or answers in time is read then.
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

import { fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type AnswerRequestRequest,
  AnswerRequestRequestSchema,
  type EnvironmentQuestion,
  EnvironmentQuestionSchema,
} from "#gen/runner/v1/environment_question_pb.js";
import { unindexed } from "../expressions.ts";
import { fromBody, toBody } from "../json.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import type { EnvironmentQuestionTable } from "./environment-schema.ts";

/** Returns the topic that is touched when there is a new question for a runner. */
export function questionsFor(runnerId: string): string {
  return `questions for ${runnerId}`;
}

/** The asker of a question, and the time until which it waits. */
export interface QuestionFacts {
  readonly runnerId: string;
  readonly askerId: string;
  /** Milliseconds since 1970 UTC. */
  readonly endsAt: number;
}

const insertRow = prepared<Omit<EnvironmentQuestionTable, "answer">, unknown>((db, row) =>
  db.insertInto("environment_question").values({
    id: row.id,
    organization_id: row.organization_id,
    runner_id: row.runner_id,
    environment_id: row.environment_id,
    asker_id: row.asker_id,
    ends_at: row.ends_at,
    body: row.body,
    answer: null,
  }),
);

/** Adds a question and wakes the stream of its runner. It leaves no audit row: it changes no resource. */
export async function insertQuestion(
  tx: WriteTransaction,
  { organizationId }: Scope,
  question: EnvironmentQuestion,
  { runnerId, askerId, endsAt }: QuestionFacts,
): Promise<void> {
  await insertRow(tx.db, {
    id: question.id,
    organization_id: organizationId,
    runner_id: runnerId,
    environment_id: question.environmentId,
    asker_id: askerId,
    ends_at: endsAt,
    body: toBody(EnvironmentQuestionSchema, question),
  });
  tx.touch(questionsFor(runnerId));
}

type OfRunner = { readonly runnerId: string; readonly organizationId: string; readonly now: number };

const selectOpen = prepared<OfRunner, Pick<EnvironmentQuestionTable, "asker_id">>(
  (db, { runnerId, organizationId, now }) =>
    db
      .selectFrom("environment_question")
      .select("asker_id")
      .where("runner_id", "=", runnerId)
      .where(unindexed("environment_question.organization_id"), "=", organizationId)
      .where(unindexed("environment_question.ends_at"), ">", now)
      .where("answer", "is", null),
);

/** Returns the askers of a runner's unanswered questions, with the id of each question. */
export async function findAskers(
  db: Reader,
  { organizationId }: Scope,
  runnerId: string,
  now: number,
): Promise<readonly string[]> {
  const rows = await selectOpen(db, { runnerId, organizationId, now });
  return rows.map(({ asker_id }) => asker_id);
}

const selectUnanswered = prepared<OfRunner, Pick<EnvironmentQuestionTable, "body">>(
  (db, { runnerId, organizationId, now }) =>
    db
      .selectFrom("environment_question")
      .select("body")
      .where("runner_id", "=", runnerId)
      .where(unindexed("environment_question.organization_id"), "=", organizationId)
      .where(unindexed("environment_question.ends_at"), ">", now)
      .where("answer", "is", null)
      .orderBy("id"),
);

/** Returns the unanswered questions for a runner, in the order in which they were asked. */
export async function findUnansweredQuestions(
  db: Reader,
  { organizationId }: Scope,
  runnerId: string,
  now: number,
): Promise<EnvironmentQuestion[]> {
  const rows = await selectUnanswered(db, { runnerId, organizationId, now });
  return rows.map(({ body }) => fromBody(EnvironmentQuestionSchema, body));
}

type OfAsker = Omit<OfRunner, "now"> & { readonly environmentId: string; readonly askerId: string };

const selectOfAsker = prepared<OfAsker, Pick<EnvironmentQuestionTable, "body">>(
  (db, { runnerId, organizationId, environmentId, askerId }) =>
    db
      .selectFrom("environment_question")
      .select("body")
      .where("runner_id", "=", runnerId)
      .where(unindexed("environment_question.organization_id"), "=", organizationId)
      .where(unindexed("environment_question.environment_id"), "=", environmentId)
      .where(unindexed("environment_question.asker_id"), "=", askerId)
      .orderBy("id"),
);

/** Returns an asker's questions about an environment, answered or not. */
export async function findQuestionsOf(
  db: Reader,
  { organizationId }: Scope,
  asker: Omit<OfAsker, "organizationId">,
): Promise<EnvironmentQuestion[]> {
  const rows = await selectOfAsker(db, { ...asker, organizationId });
  return rows.map(({ body }) => fromBody(EnvironmentQuestionSchema, body));
}

type ById = { readonly id: string; readonly organizationId: string };

const selectById = prepared<
  ById,
  Pick<EnvironmentQuestionTable, "runner_id" | "ends_at" | "body" | "answer">
>((db, { id, organizationId }) =>
  db
    .selectFrom("environment_question")
    .select(["runner_id", "ends_at", "body", "answer"])
    .where("id", "=", id)
    .where(unindexed("environment_question.organization_id"), "=", organizationId),
);

/** A question as its runner and its waiting caller need it. */
export interface StoredQuestion {
  readonly runnerId: string;
  readonly endsAt: number;
  readonly question: EnvironmentQuestion;
  /** Undefined until it is answered. */
  readonly answer: AnswerRequestRequest | undefined;
}

/** Returns a question; undefined once nothing waits for it. */
export async function findQuestion(
  db: Reader,
  { organizationId }: Scope,
  id: string,
): Promise<StoredQuestion | undefined> {
  const [row] = await selectById(db, { id, organizationId });
  return (
    row && {
      runnerId: row.runner_id,
      endsAt: row.ends_at,
      question: fromBody(EnvironmentQuestionSchema, row.body),
      answer: row.answer === null ? undefined : fromBinary(AnswerRequestRequestSchema, row.answer),
    }
  );
}

const setProgress = prepared<ById & { endsAt: number; body: string }, unknown>(
  (db, { id, organizationId, endsAt, body }) =>
    db
      .updateTable("environment_question")
      .set({ ends_at: endsAt, body })
      .where("id", "=", id)
      .where(unindexed("environment_question.organization_id"), "=", organizationId)
      .where("answer", "is", null),
);

/** Stores the progress of an unanswered question, and its new end, and wakes its waiting caller. */
export async function recordProgress(
  tx: WriteTransaction,
  { organizationId }: Scope,
  question: EnvironmentQuestion,
  endsAt: number,
): Promise<void> {
  const { id } = question;
  await setProgress(tx.db, { id, organizationId, endsAt, body: toBody(EnvironmentQuestionSchema, question) });
  tx.touch(id);
}

const setAnswer = prepared<ById & { answer: Uint8Array }, unknown>((db, { id, organizationId, answer }) =>
  db
    .updateTable("environment_question")
    .set({ answer })
    .where("id", "=", id)
    .where(unindexed("environment_question.organization_id"), "=", organizationId)
    .where("answer", "is", null),
);

/** Stores the answer to a question that has none, and wakes its waiting caller. */
export async function recordAnswer(
  tx: WriteTransaction,
  { organizationId }: Scope,
  answer: AnswerRequestRequest,
): Promise<void> {
  const id = answer.questionId;
  await setAnswer(tx.db, { id, organizationId, answer: toBinary(AnswerRequestRequestSchema, answer) });
  tx.touch(id);
}

const deleteById = prepared<ById, unknown>((db, { id, organizationId }) =>
  db
    .deleteFrom("environment_question")
    .where("id", "=", id)
    .where(unindexed("environment_question.organization_id"), "=", organizationId),
);

/** Removes a question that nothing waits for any more. */
export async function removeQuestion(
  tx: WriteTransaction,
  { organizationId }: Scope,
  id: string,
): Promise<void> {
  await deleteById(tx.db, { id, organizationId });
}

/**
 * Returns the organizations of up to `limit` questions that ended before `cutoff`, left by servers that were killed
 * while a caller waited. For the system, so without a scope.
 */
export function findEndedQuestions(db: Reader, cutoff: number, limit: number): Promise<Scope[]> {
  return builderOf(db)
    .selectFrom("environment_question")
    .select("organization_id as organizationId")
    .where("ends_at", "<=", cutoff)
    .orderBy("ends_at")
    .limit(limit)
    .execute();
}

/** Removes the questions of an organization that ended before `cutoff`. @returns their number */
export async function removeEndedQuestions(
  tx: WriteTransaction,
  { organizationId }: Scope,
  cutoff: number,
): Promise<number> {
  const { numDeletedRows } = await builderOf(tx.db)
    .deleteFrom("environment_question")
    .where("organization_id", "=", organizationId)
    .where(unindexed("environment_question.ends_at"), "<=", cutoff)
    .executeTakeFirstOrThrow();
  return Number(numDeletedRows);
}

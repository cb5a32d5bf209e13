import { findEndedQuestions, removeEndedQuestions } from "../store/environment/environment-question.ts";
import type { Store } from "../store/store.ts";
import type { JobFactory } from "./job.ts";
import { writeInEach } from "./job-writes.ts";

/** Nobody is asked a question that has ended, so the interval may be long. */
const EVERY_MS = 60_000;

/** Maximum number of questions checked per run. */
const MAX_QUESTIONS = 1_000;

/**
 * Removes the questions whose askers no longer wait: those of a server that was killed, and those that were left to
 * their runner. Other questions are removed by their askers.
 *
 * @param now milliseconds since 1970 UTC
 * @returns the number of questions removed
 */
export async function removeAbandonedQuestions(store: Store, now: number): Promise<number> {
  const ended = await findEndedQuestions(store.reader, now - EVERY_MS, MAX_QUESTIONS);
  return writeInEach(store, "job/question-expiry", ended, (tx, scope) =>
    removeEndedQuestions(tx, scope, now - EVERY_MS),
  );
}

/** Removes questions about environments whose askers no longer wait. */
export const questionExpiryJob: JobFactory = ({ store, now }) => ({
  name: "question-expiry",
  everyMs: EVERY_MS,
  run: () => removeAbandonedQuestions(store, now()),
});

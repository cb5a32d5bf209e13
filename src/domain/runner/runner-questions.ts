import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { type Runner, RunnerPhase } from "#gen/service/v1/runner_pb.js";
import { DomainError, notFound, valueUnusable } from "../error.ts";
import { INACTIVE_AFTER_MS } from "./runner-heartbeat.ts";

/** Interval at which the server sends a sign of life on a stream of questions (contract, WatchRequestsResponse). */
export const STREAM_SIGN_MS = 15_000;

/** Time for which a stream counts as open after its server's last sign of life. */
export const STREAM_LIVES_MS = 3 * STREAM_SIGN_MS;

/** Maximum open questions of one caller at a runner: a page that shows an environment asks a few at once. */
export const MAX_QUESTIONS_OF_CALLER = 8;

/** Maximum open questions at a runner: enough for several callers at their limit. */
export const MAX_QUESTIONS_OF_RUNNER = 8 * MAX_QUESTIONS_OF_CALLER;

/** Time without progress after which a long-running question ends: no step of a push is silent for longer. */
export const SILENT_MS = 140_000;

/** Maximum duration of a question, regardless of progress: as long as one git command may take. */
export const LONG_RUNNING_MS = 3_600_000;

/** Returns the new end of a question after progress. @param lastEnd the end that progress cannot postpone */
export function endAfterProgress(now: number, lastEnd: number): number {
  return Math.min(now + SILENT_MS, lastEnd);
}

/** The stream through which a runner gets questions. */
export interface RunnerQuestions {
  /** Id of the stream that opened last; null before the first. */
  readonly questionsStream: string | null;
  /** Time until which it counts as open, in milliseconds since 1970 UTC; 0 once it has ended. */
  readonly questionsUntil: number | null;
}

/** Returns whether a runner listens to questions now. */
export function listensToQuestions(
  { questionsUntil, seenAt }: RunnerQuestions & { readonly seenAt: number | null },
  now: number,
): boolean {
  return (questionsUntil ?? 0) > now && now - (seenAt ?? 0) < INACTIVE_AFTER_MS;
}

/**
 * Requires that one more question may be asked.
 * @param askers the ids of those who wait for answers of the runner, one for each question
 * @throws DomainError TOO_MANY_QUESTIONS
 */
export function requireRoomForQuestion(askers: readonly string[], askerId: string): void {
  // The narrower limit comes first: it is the one that the caller can act on.
  if (askers.filter((id) => id === askerId).length >= MAX_QUESTIONS_OF_CALLER)
    throw tooManyQuestions("caller", MAX_QUESTIONS_OF_CALLER);
  if (askers.length >= MAX_QUESTIONS_OF_RUNNER) throw tooManyQuestions("runner", MAX_QUESTIONS_OF_RUNNER);
}

function tooManyQuestions(scope: "caller" | "runner", limit: number): DomainError {
  return new DomainError(
    ErrorReason.TOO_MANY_QUESTIONS,
    scope === "caller"
      ? `the caller has ${limit} questions open at this runner, which is the maximum: wait for an answer`
      : `the runner has ${limit} questions open, which is the maximum: call again later`,
    { scope, limit: String(limit) },
  );
}

/** What people can still read while an environment is unreachable. */
const STILL_THERE = "Its last report can still be read with GetEnvironmentChanges and GetEnvironmentDiff";

/** The causes that the server itself finds, as messages for people. */
const CAUSES = {
  environment_gone: "the environment is not there",
  runner_silent:
    "its runner does not listen to questions now: it is stopped, out of reach, or of an earlier release",
  no_answer: "its runner did not answer in time",
} as const;

/** Returns the error for an unreachable environment. */
export function environmentUnreachable(cause: keyof typeof CAUSES): DomainError {
  return new DomainError(
    ErrorReason.ENVIRONMENT_UNREACHABLE,
    `the environment cannot be looked at: ${CAUSES[cause]}. ${STILL_THERE}`,
    { cause },
  );
}

/** Returns the error for a runner's failure to answer. */
export function questionFailed({ reason, message }: { reason: string; message: string }): DomainError {
  if (reason === "environment_absent") return environmentUnreachable("environment_gone");
  if (reason === "commit_unknown") return notFound("commit");
  if (reason === "file_absent") return notFound("file");
  if (reason === "path_refused" || reason === "file_unfit") return valueUnusable("path", message);
  return new DomainError(
    ErrorReason.ENVIRONMENT_UNREACHABLE,
    `the environment cannot be looked at: ${message || "its runner gave no reason"}. ${STILL_THERE}`,
    { cause: reason || "failed" },
  );
}

/** Why a runner cannot be asked, as messages for people. */
const UNREACHABLE = {
  runner_paused: "it is paused: UpdateRunner makes it active again",
  runner_silent: "it does not listen to questions now: it is stopped, out of reach, or of an earlier release",
  no_answer: "it did not answer in time",
  answer_failed: "it failed before it could ask the remote: call again, or read its log",
  question_unknown: "it is of an earlier release, which cannot answer that",
} as const;

/** Returns the error for a runner that cannot be asked. */
export function runnerUnreachable(cause: keyof typeof UNREACHABLE): DomainError {
  const message = `the runner cannot be asked: ${UNREACHABLE[cause]}`;
  return new DomainError(ErrorReason.RUNNER_UNREACHABLE, message, { cause });
}

/**
 * Requires that a runner can be asked about something other than its environments. @throws DomainError
 * RUNNER_UNREACHABLE
 */
export function requireAskable(
  known: RunnerQuestions & { readonly seenAt: number | null; readonly runner: Pick<Runner, "spec"> },
  now: number,
): void {
  if (known.runner.spec?.desiredPhase === RunnerPhase.INACTIVE) throw runnerUnreachable("runner_paused");
  if (!listensToQuestions(known, now)) throw runnerUnreachable("runner_silent");
}

/** Returns the error for a repository that a runner cannot read. @param reason as the runner reports it */
export function repositoryUnreadable({ reason, message }: { reason: string; message: string }): DomainError {
  return new DomainError(
    ErrorReason.REPOSITORY_UNREADABLE,
    `the repository cannot be read: ${message || "the runner gave no reason"}`,
    { cause: reason || "failed" },
  );
}

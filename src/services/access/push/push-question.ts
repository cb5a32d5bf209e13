import { clone, create, equals, type MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type AnswerRequestRequest_BranchPushed as BranchPushed,
  type EnvironmentQuestion,
  EnvironmentQuestion_PushBranchSchema as PushBranchSchema,
} from "#gen/runner/v1/environment_question_pb.js";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import type { EnvironmentPush_Progress as Progress } from "#gen/service/v1/environment_push_pb.js";
import { pushRefused } from "../../../domain/environment/environment-push.ts";
import { askerOf } from "../../environment/environment-question.ts";
import { askLongRunning, type LongRunningDependencies } from "../../environment/long-running-question.ts";

/** The result of a runner's inspection or push, or its progress. */
export type PushAnswer = { readonly pushed: BranchPushed } | PushInProgress;

/** A push that a runner is still executing. */
export interface PushInProgress {
  readonly pushed: undefined;
  readonly progress: Progress | undefined;
}

type PushBranchInit = MessageInitShape<typeof PushBranchSchema>;

/**
 * Asks the runner of an environment to inspect or execute a push. If an earlier call of the same caller has asked the
 * same, waits for that answer.
 *
 * @throws DomainError PUSH_REFUSED, and what asking a runner throws
 */
export async function askToPush(
  deps: LongRunningDependencies,
  ctx: HandlerContext,
  environment: Environment,
  push: PushBranchInit,
): Promise<PushAnswer> {
  const value = create(PushBranchSchema, push);
  const isSame = (asked: EnvironmentQuestion["question"]) =>
    asked.case === "pushBranch" && equals(PushBranchSchema, asked.value, value);
  const answer = await ask(deps, ctx, environment, { value, isSame });
  // There is an answer or progress, since a question was passed.
  if (!answer?.pushed) return answer ?? { pushed: undefined, progress: undefined };
  requireDone(answer.pushed);
  return answer;
}

/** Requires that a push has succeeded. @throws DomainError PUSH_REFUSED if the runner or the remote has rejected it */
export function requireDone({ failure }: BranchPushed): void {
  if (failure) throw pushRefused(failure.reason, failure.message);
}

/**
 * Waits for a push that an earlier call of the same caller began, regardless of the decision on it.
 *
 * @param push the push without a decision
 * @returns undefined if there is no such push; a failed one includes its failure
 * @throws DomainError what asking a runner throws
 */
export async function awaitBegunPush(
  deps: LongRunningDependencies,
  ctx: HandlerContext,
  environment: Environment,
  push: PushBranchInit,
): Promise<PushAnswer | undefined> {
  const value = create(PushBranchSchema, push);
  const isSame = (asked: EnvironmentQuestion["question"]) => {
    if (asked.case !== "pushBranch" || !asked.value.decided) return false;
    const undecided = clone(PushBranchSchema, asked.value);
    undecided.decided = undefined;
    return equals(PushBranchSchema, undecided, value);
  };
  return ask(deps, ctx, environment, { value: undefined, isSame });
}

async function ask(
  deps: LongRunningDependencies,
  ctx: HandlerContext,
  { id: environmentId, metadata }: Environment,
  {
    value,
    isSame,
  }: {
    readonly value: Extract<EnvironmentQuestion["question"], { case: "pushBranch" }>["value"] | undefined;
    readonly isSame: (asked: EnvironmentQuestion["question"]) => boolean;
  },
): Promise<PushAnswer | undefined> {
  const lasting = await askLongRunning(deps, askerOf(deps, ctx), metadata?.runnerId ?? "", {
    environmentId,
    question: value && { case: "pushBranch", value },
    answer: "branchPushed",
    isSame,
    // A push that has begun is not interrupted: nobody would know whether the remote accepted it.
    outlivesCaller: !value || value.decided !== undefined,
  });
  if (!lasting) return undefined;
  if (!lasting.isDone) return { pushed: undefined, progress: lasting.progress };
  return { pushed: lasting.answer };
}

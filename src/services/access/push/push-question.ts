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
import { askLasting, type LastingDependencies } from "../../environment/lasting-question.ts";

/** The result of a runner's look or push, or its progress. */
export type PushAnswer = { readonly pushed: BranchPushed } | PushGoingOn;

/** A push that a runner is still at. */
export interface PushGoingOn {
  readonly pushed: undefined;
  readonly progress: Progress | undefined;
}

type AskedPush = MessageInitShape<typeof PushBranchSchema>;

/**
 * Asks the runner of an environment to look at a push, or to carry it out; or goes on waiting for what an earlier call
 * of the same caller has asked.
 *
 * @throws DomainError PUSH_REFUSED, and what asking a runner throws
 */
export async function askToPush(
  deps: LastingDependencies,
  ctx: HandlerContext,
  environment: Environment,
  push: AskedPush,
): Promise<PushAnswer> {
  const value = create(PushBranchSchema, push);
  const isSame = (asked: EnvironmentQuestion["question"]) =>
    asked.case === "pushBranch" && equals(PushBranchSchema, asked.value, value);
  const answer = await ask(deps, ctx, environment, { value, isSame });
  // A question is given, so that there is an answer.
  if (!answer?.pushed) return answer ?? { pushed: undefined, progress: undefined };
  requireDone(answer.pushed);
  return answer;
}

/** @throws DomainError PUSH_REFUSED for what the runner, or the remote, does not take */
export function requireDone({ failure }: BranchPushed): void {
  if (failure) throw pushRefused(failure.reason, failure.message);
}

/**
 * Waits for a push that an earlier call of the same caller has begun, whatever was decided on.
 *
 * @param push without a decision
 * @returns undefined where there is none; one that has failed with its failure
 * @throws DomainError what asking a runner throws
 */
export async function awaitBegunPush(
  deps: LastingDependencies,
  ctx: HandlerContext,
  environment: Environment,
  push: AskedPush,
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
  deps: LastingDependencies,
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
  const lasting = await askLasting(deps, askerOf(deps, ctx), metadata?.runnerId ?? "", {
    environmentId,
    question: value && { case: "pushBranch", value },
    answer: "branchPushed",
    isSame,
    // A push that has begun is not cut off: whether the remote has taken it would not be known.
    isLeft: !value || value.decided !== undefined,
  });
  if (!lasting) return undefined;
  if (!lasting.isDone) return { pushed: undefined, progress: lasting.progress };
  return { pushed: lasting.answer };
}

import type { EnvironmentQuestion } from "#gen/runner/v1/environment_question_pb.js";
import type { WatchedWorkspace } from "../changes/environment-report.ts";
import type { EnvironmentWatch } from "../changes/environment-watch.ts";
import type { RunnerTools } from "../protocol/assignment.ts";
import type { WorkClient } from "../protocol/connection.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import { environmentWorkspace } from "../steps/work-dirs.ts";
import { readCheckouts } from "../steps/workspace.ts";
import { answerPush } from "./push-answer.ts";
import type { Answer, AnswerQuestion } from "./question-loop.ts";

/** What an answer is made with. */
export interface AnswerTools extends RunnerTools {
  readonly client: Pick<WorkClient, "getQuestionCredential">;
  readonly watch: EnvironmentWatch;
}

/** Returns the function that answers questions about the environments of a runner. */
export function environmentAnswers(tools: AnswerTools): AnswerQuestion {
  return async ({ id, environmentId, question }, signal) => {
    const watched = await findWorkspace(tools, environmentId);
    if (question.case !== "pushBranch") return answerAbout(tools, watched, question);
    const value = await answerPush(tools, watched, { id, push: question.value, signal });
    return { case: "branchPushed", value };
  };
}

async function answerAbout(
  { watch }: AnswerTools,
  watched: WatchedWorkspace,
  question: EnvironmentQuestion["question"],
): Promise<Answer> {
  switch (question.case) {
    case "refreshChanges":
      await watch.refresh(watched);
      return { case: "changesRefreshed", value: {} };
    default:
      throw new WorkFailure(
        "question_unknown",
        "its runner is of an earlier release, which cannot answer that",
      );
  }
}

/** @throws WorkFailure environment_absent */
async function findWorkspace(tools: AnswerTools, environmentId: string): Promise<WatchedWorkspace> {
  const workspace = environmentWorkspace(tools, environmentId);
  const checkouts = await readCheckouts(workspace);
  if (!checkouts)
    throw new WorkFailure("environment_absent", "the environment is not made yet, or has been removed");
  return { environmentId, workspace, checkouts, secrets: tools.watch.secretsOf(environmentId) };
}

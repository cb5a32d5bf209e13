import type { WorkflowExecution, WorkflowStep } from "#gen/service/v1/workflow_pb.js";
import type { StepTransition } from "../../../domain/workflow/execution/workflow-step.ts";
import {
  newFollowedPullRequest,
  placeOfPullRequest,
} from "../../../domain/workflow/pull-request/followed-pull-request.ts";
import { findEnvironment } from "../../../store/environment/environment.ts";
import { mayStore, PULL_REQUESTS_LEVEL } from "../../../store/feature-level.ts";
import { findSourceSetters } from "../../../store/identity/source-setter.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { insertPullRequest, isPullRequestKnown } from "../../../store/workflow/pull-request/pull-request.ts";
import type { FoundAction } from "../../../store/workflow/workflow-action.ts";

/**
 * Stores the pull requests that steps of an action have opened; from then on they are synchronized. Omits pull
 * requests that were reported before, or whose source is not at a host.
 *
 * @param action the action after the report
 */
export async function recordPullRequests(
  tx: WriteTransaction,
  scope: Scope,
  { action, execution }: { readonly action: FoundAction; readonly execution: WorkflowExecution },
  steps: readonly WorkflowStep[],
  transitions: readonly StepTransition[],
): Promise<void> {
  const opened = transitions.filter(({ state, pullRequestUrl }) => state === "done" && pullRequestUrl);
  if (opened.length === 0 || !mayStore(tx, PULL_REQUESTS_LEVEL)) return;
  const environment = await findEnvironment(tx.db, scope, action.status?.environmentId ?? "");
  if (!environment) return;
  const sourceSetBy = await findSourceSetters(tx.db, scope, "environment", environment);
  for (const { stepIndex, pullRequestUrl: url = "" } of opened) {
    const place = placeOfPullRequest(environment.spec?.content?.initializer, url);
    if (!place || (await isPullRequestKnown(tx.db, scope, action.id, place))) continue;
    const pullRequest = newFollowedPullRequest({
      id: tx.newId(),
      action,
      stepIndex,
      step: steps[stepIndex],
      url,
      place,
      now: tx.now,
    });
    const workflowId = execution.metadata?.workflowId ?? "";
    await insertPullRequest(tx, scope, pullRequest, { workflowId, place, sourceSetBy });
  }
}

import type {
  WorkflowAction,
  WorkflowStep_Report,
  WorkflowTrigger,
  WorkflowTrigger_PullRequest,
  WorkflowTriggerContext,
} from "#gen/service/v1/workflow_pb.js";
import { valueUnusable } from "../error.ts";
import { requireValidSchedule } from "../project/schedule.ts";
import { isClonable } from "../source/remote.ts";
import { requireNoDeceptiveText } from "../text/deceptive-text.ts";
import { checkOutputSpecs } from "./report-output.ts";

/**
 * Checks the triggers of a request as far as possible without looking anything up, so that the
 * workflow does not fail when it runs.
 * @param nowMs milliseconds since 1970 UTC
 * @throws DomainError VALUE_UNUSABLE, naming the place, such as triggers[0].time.cronExpression;
 * TEXT_DECEPTIVE
 */
export function checkTriggers(triggers: readonly WorkflowTrigger[], nowMs: number): void {
  for (const [index, { trigger, context }] of triggers.entries()) {
    const path = `triggers[${index}]`;
    if (trigger.case === "time") requireValidSchedule(trigger.value, nowMs, `${path}.time`);
    if (trigger.case === "pullRequest") requireSensibleResources(trigger.value, `${path}.pullRequest`);
    if (context?.context.case === "fromTrigger" && trigger.case !== "pullRequest") {
      throw valueUnusable(
        `${path}.context.fromTrigger`,
        "fromTrigger takes its context from a pull request: use it in a pullRequest trigger",
      );
    }
    if (context) checkContext(context, `${path}.context`);
  }
}

/**
 * Checks a context likewise, in a trigger or on its own.
 * @param path JSON path of the context
 * @throws DomainError VALUE_UNUSABLE; TEXT_DECEPTIVE
 */
export function checkContext({ context }: WorkflowTriggerContext, path: string): void {
  if (context.case === "agent") requireNoDeceptiveText(context.value.prompt, `${path}.agent.prompt`);
  if (context.case !== "repositories") return;
  const { repositorySelector: selector } = context.value;
  if (selector.case === "repositoryUrls") {
    for (const [index, url] of selector.value.repoUrls.entries()) {
      if (isClonable(url)) continue;
      throw valueUnusable(
        `${path}.repositories.repositoryUrls.repoUrls[${index}]`,
        "a repository is named by a URL of https, http, ssh or file, or as user@host:path",
      );
    }
  }
  if (selector.case === "repoSelector" && !isHost(selector.value.scmHost)) {
    throw valueUnusable(
      `${path}.repositories.repoSelector.scmHost`,
      "scmHost is a host name such as git.example.com, with a port where it needs one, and nothing else",
    );
  }
}

/**
 * Checks an action: its outputs can be fulfilled and evaluated, and its prompts are not deceptive.
 * @throws DomainError VALUE_UNUSABLE; TEXT_DECEPTIVE
 */
export function checkAction(action: WorkflowAction, path: "action" | "report"): void {
  for (const [index, { step }] of action.steps.entries()) {
    const field = `${path}.steps[${index}]`;
    if (step.case === "agent") requireNoDeceptiveText(step.value.prompt, `${field}.agent.prompt`);
    if (step.case === "approval") requireNoDeceptiveText(step.value.message, `${field}.approval.message`);
    if (step.case === "report") {
      checkOutputSpecs(step.value.outputs, `${field}.report.outputs`);
      checkPrompts(step.value, `${field}.report`);
    }
    if (step.case === "pullRequest" && path === "report") {
      throw valueUnusable(
        `${field}.pullRequest`,
        "a report works in an empty folder, without a repository: open pull requests in the action",
      );
    }
  }
}

function checkPrompts({ outputs }: WorkflowStep_Report, path: string): void {
  for (const [index, { extraction }] of outputs.entries()) {
    if (extraction.case !== "prompt") continue;
    requireNoDeceptiveText(extraction.value, `${path}.outputs[${index}].prompt`);
  }
}

function requireSensibleResources(
  { webhookId, integrationId }: WorkflowTrigger_PullRequest,
  path: string,
): void {
  if (webhookId !== undefined) {
    throw valueUnusable(`${path}.webhookId`, "this server has no webhook resources: leave webhookId unset");
  }
  if (integrationId !== undefined) {
    throw valueUnusable(
      `${path}.integrationId`,
      "this server has no integration resources: leave integrationId unset",
    );
  }
}

/** Returns whether a text is a bare host name or address, such as `git.example.com:8443`. */
function isHost(text: string): boolean {
  return !/[/?#@\\\s]/.test(text) && URL.parse(`https://${text}`)?.hostname !== undefined;
}

import { create } from "@bufbuild/protobuf";
import type { PullRequest } from "#gen/service/v1/agent_pb.js";
import type { ForkWork } from "#gen/service/v1/fork_work_pb.js";
import {
  WorkflowTrigger_PullRequestEvent as Event,
  TriggerVerdict,
  type WorkflowTrigger,
  type WorkflowTriggerContext,
  type WorkflowTriggerContext_Repositories,
  WorkflowTriggerContextSchema,
  type WorkflowTriggerEvent,
} from "#gen/service/v1/workflow_pb.js";
import { phaseUnsuitable } from "../../error.ts";
import { repositoryHost, repositoryIdentity } from "../../source/repository-identity.ts";
import { isFromFork } from "./fork-work.ts";
import type { PullRequestDelivery } from "./pull-request-event.ts";

/** One event that fires one trigger. */
export interface TriggerMatch {
  /** Index in the workflow's list of triggers, from 0. */
  readonly triggerIndex: number;
  readonly event: Event;
  /**
   * The same for every delivery of this event of the pull request at its head: `pr:<trigger
   * index>:<host>/<repository>:<pull request>:<event>:<head SHA>`.
   */
  readonly deduplicationKey: string;
}

/**
 * Returns the pull-request triggers that a delivery fires, in their order, and each with its events
 * in the delivery's order. A trigger without kinds accepts every kind. Its context decides which
 * repositories it accepts:
 *
 * - fromTrigger and agent: every repository that posts to the workflow;
 * - repository URLs: one of them is the delivery's repository;
 * - projects: a git remote of one of them is;
 * - a search for repositories: its host is the delivery's. The search is only made when the
 * execution starts, and the person who set up the hook has the workflow's secret.
 * @param remotesByProjectId the git remotes of the projects of {@link projectIdsOf}; a deleted
 * project has none
 */
export function matchingTriggers(
  triggers: readonly WorkflowTrigger[],
  { events, pullRequest, repositoryUrls }: PullRequestDelivery,
  remotesByProjectId: ReadonlyMap<string, readonly string[]>,
): TriggerMatch[] {
  const repositories = identities(repositoryUrls);
  const hosts = new Set(repositoryUrls.flatMap((url) => repositoryHost(url) ?? []));
  const includeRepository = (remotes: readonly string[]) =>
    [...identities(remotes)].some((identity) => repositories.has(identity));
  const accepts = ({ context }: WorkflowTriggerContext): boolean => {
    switch (context.case) {
      case "fromTrigger":
      case "agent":
        return true;
      case "projects":
        return context.value.projectIds.some((id) => includeRepository(remotesByProjectId.get(id) ?? []));
      case "repositories":
        return acceptsRepositories(context.value, includeRepository, hosts);
      case undefined:
        return false;
    }
  };
  return triggers.flatMap(({ trigger, context }, triggerIndex) => {
    if (trigger.case !== "pullRequest" || !context || !accepts(context)) return [];
    const kinds = trigger.value.events;
    return events
      .filter((event) => kinds.length === 0 || kinds.includes(event))
      .map((event) => ({ triggerIndex, event, deduplicationKey: keyOf(triggerIndex, event, pullRequest) }));
  });
}

/** Returns the first manual trigger, whose context a manual start uses; undefined without one. */
export function manualTrigger(
  triggers: readonly WorkflowTrigger[],
): { readonly triggerIndex: number; readonly context: WorkflowTriggerContext } | undefined {
  const triggerIndex = triggers.findIndex(({ trigger }) => trigger.case === "manual");
  const context = triggers[triggerIndex]?.context;
  return context && { triggerIndex, context };
}

/** Returns the distinct projects whose git remotes {@link matchingTriggers} needs. */
export function projectIdsOf(triggers: readonly WorkflowTrigger[]): string[] {
  const ids = triggers.flatMap(({ trigger, context }) =>
    trigger.case === "pullRequest" && context?.context.case === "projects"
      ? context.context.value.projectIds
      : [],
  );
  return [...new Set(ids)];
}

/**
 * Returns the context of an execution of a pull-request trigger: for fromTrigger the pull request's
 * repository, by its clone URL; else the trigger's own context. It does not contain the branch,
 * which is in the pull request of the execution's trigger.
 */
export function contextOfTrigger(trigger: WorkflowTrigger, pullRequest: PullRequest): WorkflowTriggerContext {
  const { context } = trigger;
  if (!context) throw new Error("the trigger has no context");
  if (context.context.case !== "fromTrigger") return context;
  const cloneUrl = pullRequest.repository?.cloneUrl;
  if (!cloneUrl) throw new Error("the pull request has no repository to clone");
  return create(WorkflowTriggerContextSchema, {
    context: {
      case: "repositories",
      value: { repositorySelector: { case: "repositoryUrls", value: { repoUrls: [cloneUrl] } } },
    },
  });
}

/** Returns a trigger's settings for a pull request from a fork or of unknown origin; empty for other pull requests. */
export function forkWorkOf({ trigger }: WorkflowTrigger, pullRequest: PullRequest): { forkWork?: ForkWork } {
  const forkWork = trigger.case === "pullRequest" ? trigger.value.forkWork : undefined;
  return forkWork && isFromFork(pullRequest) ? { forkWork } : {};
}

function acceptsRepositories(
  { repositorySelector }: WorkflowTriggerContext_Repositories,
  includeRepository: (remotes: readonly string[]) => boolean,
  hosts: ReadonlySet<string>,
): boolean {
  switch (repositorySelector.case) {
    case "repositoryUrls":
      return includeRepository(repositorySelector.value.repoUrls);
    case "repoSelector":
      // The API may have another port than the repositories; they share the host name.
      return hosts.has(repositoryHost(`https://${repositorySelector.value.scmHost}/any`) ?? "");
    case undefined:
      return false;
  }
}

function identities(remotes: readonly string[]): Set<string> {
  return new Set(remotes.flatMap((remote) => repositoryIdentity(remote) ?? []));
}

function keyOf(triggerIndex: number, event: Event, { id, headSha, repository }: PullRequest): string {
  const cloneUrl = repository?.cloneUrl ?? "";
  const name = repositoryIdentity(cloneUrl) ?? cloneUrl;
  return ["pr", triggerIndex, name, id, Event[event].toLowerCase(), headSha].join(":");
}

/** Requires that an event was stored with enough data to handle it again. @throws DomainError PHASE_UNSUITABLE */
export function requireRedeliverable({ verdict }: WorkflowTriggerEvent): void {
  if (verdict !== TriggerVerdict.BAD_SIGNATURE) return;
  throw phaseUnsuitable(
    "workflow trigger event",
    "BAD_SIGNATURE",
    "a delivery with a bad signature is not stored: have its sender deliver it again",
  );
}

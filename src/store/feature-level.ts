import type { WriteTransaction } from "./store.ts";

/**
 * The feature level of this release. It is one higher than that of the previous release if this release stores
 * something that the previous one would lose: rows are whole messages, and a server that updates a row writes only the
 * fields that it knows.
 */
export const FEATURE_LEVEL = 2;

/** An agent execution and its new environment can be one piece of work, which older servers do not assign. */
export const AGENT_WITH_ENVIRONMENT_LEVEL = 2;

/** Workflows have approval steps, and policies define who decides them. */
export const APPROVAL_STEPS_LEVEL = 2;

/** Agent executions release their slots; older servers do not wake those that did. */
export const AGENT_SLOTS_LEVEL = 2;

/** Pull requests are tracked; events name them, and older servers do not know their type. */
export const PULL_REQUESTS_LEVEL = 2;

/** Runners report how they isolate their work. */
export const RUNNER_ISOLATION_LEVEL = 2;

/** Runners report which policies they support. */
export const RUNNER_POLICIES_LEVEL = 2;

/** Policies define which hosts isolated work may reach. */
export const EGRESS_LEVEL = 2;

/** Runners insert secrets into requests; older servers would expose the values to the work. */
export const CREDENTIAL_PROXY_LEVEL = 2;

/** Triggers define settings for pull requests from forks; executions and environments record the ones that applied. */
export const FORK_WORK_LEVEL = 2;

/** Policies define which branches may be pushed to, and pushes can require approval. */
export const PUSH_RULES_LEVEL = 2;

/** Policies define how long ended resources are kept. */
export const RETENTION_LEVEL = 2;

/** Groups and their memberships; events name them, and older servers do not know their types. */
export const GROUPS_LEVEL = 2;

/** Groups have roles on single resources; events name them, and older servers do not know their type. */
export const ROLE_ASSIGNMENTS_LEVEL = 2;

/** Messages to agent executions carry reviews, which older servers would lose or deliver without their text. */
export const AGENT_REVIEWS_LEVEL = 2;

/** Organizations subscribe to their events; events name the subscriptions, and older servers do not know their type. */
export const EVENT_SUBSCRIPTIONS_LEVEL = 2;

/** Callers create, cancel and delete prebuilds; older servers would lose the requester, and do not know the states. */
export const PREBUILD_SERVICE_LEVEL = 2;

/** Executions name their traces. */
export const TRACES_LEVEL = 2;

/** Administrators define agents, which older servers would assign to any runner. */
export const API_AGENTS_LEVEL = 2;

/** Workflows, groups, environment classes and security policies have annotations. */
export const ANNOTATIONS_LEVEL = 2;

/**
 * Returns whether a write may store data that a feature level introduced: no server that would lose it runs, and none
 * can start. While servers of two releases run at the same time it returns false, and the row keeps the form that both
 * know.
 */
export function mayStore({ featureLevel }: Pick<WriteTransaction, "featureLevel">, level: number): boolean {
  return featureLevel >= level;
}

/** The error of a process that is older than the data and would lose what newer servers have stored. */
export class NewerData extends Error {
  override readonly name = "NewerData";
}

/** The error of a command on data of an earlier release, while a server of that release may run. */
export class OlderData extends Error {
  override readonly name = "OlderData";
}

/** Returns why this release must not use data of a feature level, in words for the operator; undefined if it may. */
export function levelProblem(level: number): string | undefined {
  if (level <= FEATURE_LEVEL) return undefined;
  return (
    `the data has the feature level ${level}, and this release knows ${FEATURE_LEVEL}: ` +
    "it would lose what a newer release has stored; start that release instead"
  );
}

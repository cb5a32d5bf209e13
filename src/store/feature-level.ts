import type { WriteTransaction } from "./store.ts";

/**
 * The feature level of this release: one more than that of the release before where it stores something that the
 * release before would lose. Rows are whole messages, and a server that updates one writes the fields that it knows.
 */
export const FEATURE_LEVEL = 2;

/** Agent executions and their new environments may be one piece of work, which older servers do not hand out. */
export const AGENT_WITH_ENVIRONMENT_LEVEL = 2;

/** Workflows have approval steps, and policies say who decides them. */
export const APPROVAL_STEPS_LEVEL = 2;

/** Agent executions give their slots back: older servers do not wake those that have. */
export const AGENT_SLOTS_LEVEL = 2;

/** Pull requests are followed: events name them, whose type older servers do not know. */
export const PULL_REQUESTS_LEVEL = 2;

/** Runners say what keeps their work in. */
export const RUNNER_ISOLATION_LEVEL = 2;

/** Runners show which policies they keep. */
export const RUNNER_POLICIES_LEVEL = 2;

/** Policies say which hosts isolated work may reach. */
export const EGRESS_LEVEL = 2;

/** Secrets are put into requests by runners: older servers would give their values to the work. */
export const CREDENTIAL_PROXY_LEVEL = 2;

/** Triggers say what holds for pull requests from forks, and executions and environments what held. */
export const FORK_WORK_LEVEL = 2;

/** Policies say which branches may be pushed to, and approvals ask for pushes. */
export const PUSH_RULES_LEVEL = 2;

/** Policies say how long what has ended is kept. */
export const RETENTION_LEVEL = 2;

/** Groups and their memberships: events name them, whose types older servers do not know. */
export const GROUPS_LEVEL = 2;

/** Groups have roles on single resources: events name them, whose type older servers do not know. */
export const ROLE_ASSIGNMENTS_LEVEL = 2;

/** Messages to agent executions carry reviews, which older servers would lose, or deliver without their words. */
export const AGENT_REVIEWS_LEVEL = 2;

/** Organizations subscribe to their events: events name the subscriptions, whose type older servers do not know. */
export const EVENT_SUBSCRIPTIONS_LEVEL = 2;

/** Prebuilds are made, cancelled and deleted by callers: older servers would lose who asked, and do not know the states. */
export const PREBUILD_SERVICE_LEVEL = 2;

/** Executions name their traces. */
export const TRACES_LEVEL = 2;

/** Administrators define agents, which older servers would give to any runner. */
export const API_AGENTS_LEVEL = 2;

/** Workflows, groups, environment classes and security policies have annotations. */
export const ANNOTATIONS_LEVEL = 2;

/**
 * Returns whether a write may store what came with a feature level: no server that would lose it runs, and none can
 * start. While servers of two releases run at the same time it may not, and the row keeps the form that both know.
 */
export function mayStore({ featureLevel }: Pick<WriteTransaction, "featureLevel">, level: number): boolean {
  return featureLevel >= level;
}

/** The error of a process that is older than the data: it would lose what newer servers have stored. */
export class NewerData extends Error {
  override readonly name = "NewerData";
}

/** The error of a command on data of an earlier release, while a server of that may run. */
export class OlderData extends Error {
  override readonly name = "OlderData";
}

/** Returns why this release must not use data of a feature level, in words for the operator; undefined where it may. */
export function levelProblem(level: number): string | undefined {
  if (level <= FEATURE_LEVEL) return undefined;
  return (
    `the data has the feature level ${level}, and this release knows ${FEATURE_LEVEL}: ` +
    "it would lose what a newer release has stored; start that release instead"
  );
}

import { Principal, type Subject } from "#gen/service/v1/identity_pb.js";
import type { WorkflowExecution } from "#gen/service/v1/workflow_pb.js";

/**
 * Where a source comes from, which decides what can be done about one that is not trusted:
 *
 * - `project`: the initializer of a project, as it is at each start.
 * - `environment`: what an environment was made with, which never changes.
 * - `event`: the event of a pull request that came to a webhook.
 * - `start`: the workflow, or the context that a start gave.
 */
export type SourceKind = "project" | "environment" | "event" | "start";

/** Returns where the source of an execution's actions may come from; `isOverProject` for those over a project. */
export function sourceKindsOf({ spec }: WorkflowExecution, isOverProject: boolean): SourceKind[] {
  const isEvent = spec?.trigger?.trigger.case === "pullRequest";
  if (isOverProject) return isEvent ? ["project", "event"] : ["project"];
  return isEvent ? ["event"] : ["start"];
}

/** Somebody who set a source, with the rights that it has now. */
export interface SourceSetter {
  readonly subject: Subject;
  /**
   * - `administrator`: of the organization, with an account that is not blocked.
   * - `service_account`: in force. Administrators alone create, suspend and
   *   delete service accounts and give them their first token, so each of them
   *   is one that an administrator named.
   * - `other`: everybody else, who left or is blocked among them.
   */
  readonly standing: "administrator" | "service_account" | "other";
}

/** Whose credential is asked for, and for a source that who set. */
export interface SourceUse {
  readonly executor: Subject;
  /** Who made the workflow or project that names the executor; undefined where the executor acts by itself. */
  readonly namedBy: Subject | undefined;
  readonly setters: readonly SourceSetter[];
}

/**
 * Returns the first setter of a source on whose word the executor's credential
 * must not be used; undefined when it may. It may be used for what the executor
 * itself set, an administrator, or a service account; and that of a service
 * account also for what was set by who named it as the executor.
 */
export function untrustedSetter({ executor, namedBy, setters }: SourceUse): Subject | undefined {
  const isNamer = (subject: Subject) =>
    executor.principal === Principal.SERVICE_ACCOUNT && isSameSubject(subject, namedBy);
  return setters.find(
    ({ subject, standing }) => standing === "other" && !isSameSubject(subject, executor) && !isNamer(subject),
  )?.subject;
}

export function isSameSubject(one: Subject | undefined, other: Subject | undefined): boolean {
  return one !== undefined && one.id === other?.id && one.principal === other.principal;
}

/** Returns the subjects of lists, each once. */
export function uniqueSubjects(...lists: readonly (readonly Subject[])[]): Subject[] {
  return lists
    .flat()
    .filter((subject, index, all) => all.findIndex((other) => isSameSubject(other, subject)) === index);
}

import { Principal, type Subject } from "#gen/service/v1/identity_pb.js";
import type { WorkflowExecution } from "#gen/service/v1/workflow_pb.js";
import { credentialWithheld } from "../error.ts";

/**
 * The origin of a source, which decides the remedy for one that is not trusted:
 * - `project`: the initializer of a project, read at each start.
 * - `environment`: the initializer of an environment, which never changes.
 * - `event`: the event of a pull request that a webhook delivered.
 * - `start`: the workflow, or the context of a start.
 */
export type SourceKind = "project" | "environment" | "event" | "start";

/**
 * Returns the kinds of source that an execution's actions may have; `isOverProject` for actions
 * over a project.
 */
export function sourceKindsOf({ spec }: WorkflowExecution, isOverProject: boolean): SourceKind[] {
  const isEvent = spec?.trigger?.trigger.case === "pullRequest";
  if (isOverProject) return isEvent ? ["project", "event"] : ["project"];
  return isEvent ? ["event"] : ["start"];
}

/** A subject that set a source, with its present rights. */
export interface SourceSetter {
  readonly subject: Subject;
  /**
   * - `administrator`: of the organization, with an account that is not blocked.
   * - `service_account`: not suspended. Only administrators create, suspend and delete service accounts
   * and issue their first token, so an administrator has vouched for each of them.
   * - `other`: everybody else, including members who left or are blocked.
   */
  readonly role: "administrator" | "service_account" | "other";
}

/**
 * The subject whose credential is requested, and the setters of the source that it is requested
 * for.
 */
export interface SourceUse {
  readonly executor: Subject;
  /**
   * Creator of the workflow or project that names the executor; undefined where the executor acts
   * by itself.
   */
  readonly namedBy: Subject | undefined;
  readonly setters: readonly SourceSetter[];
}

/**
 * Returns the first setter of a source for which the executor's credential must not be used;
 * undefined when it may be used. It may be used for sources that the executor itself, an
 * administrator or a service account set. A service account's credential may also be used for sources
 * set by the subject that named it as the executor.
 */
export function untrustedSetter({ executor, namedBy, setters }: SourceUse): Subject | undefined {
  const isNamer = (subject: Subject) =>
    executor.principal === Principal.SERVICE_ACCOUNT && isSameSubject(subject, namedBy);
  return setters.find(
    ({ subject, role }) => role === "other" && !isSameSubject(subject, executor) && !isNamer(subject),
  )?.subject;
}

/**
 * Requires that the executor's credential for a host may be used on a source.
 * @param kinds possible origins of the source, for the advice of the error
 * @throws DomainError CREDENTIAL_WITHHELD
 */
export function requireTrustedSetters(host: string, use: SourceUse, kinds: readonly SourceKind[]): void {
  const untrusted = untrustedSetter(use);
  if (untrusted) throw credentialWithheld(host, untrusted.id, kinds);
}

export function isSameSubject(one: Subject | undefined, other: Subject | undefined): boolean {
  return one !== undefined && one.id === other?.id && one.principal === other.principal;
}

/** Returns the distinct subjects of several lists. */
export function uniqueSubjects(...lists: readonly (readonly Subject[])[]): Subject[] {
  return lists
    .flat()
    .filter((subject, index, all) => all.findIndex((other) => isSameSubject(other, subject)) === index);
}

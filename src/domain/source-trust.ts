import { Principal, type Subject } from "#gen/service/v1/identity_pb.js";

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

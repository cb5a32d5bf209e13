import { create } from "@bufbuild/protobuf";
import {
  type ApprovalDeciders,
  ApprovalDecidersSchema,
  ApprovalDeciders_Who as Who,
} from "#gen/service/v1/approval_pb.js";
import { Principal, type Subject } from "#gen/service/v1/identity_pb.js";
import { valueUnusable } from "../error.ts";

/** A member of the organization whose account is not blocked. */
export interface Decider {
  readonly userId: string;
  readonly isAdministrator: boolean;
  /** Ids of its groups; only of those that the query asked for. */
  readonly groupIds: readonly string[];
}

/** Returns the deciders with defaults for what was not chosen: those who may send to the run, one approval. */
export function deciders(chosen?: ApprovalDeciders): ApprovalDeciders {
  const { who = 0, userIds = [], groupIds = [], required = 0, excludesStarter = false } = chosen ?? {};
  return create(ApprovalDecidersSchema, {
    who: who || Who.STARTER_AND_ADMINISTRATORS,
    userIds: [...new Set(userIds.map((id) => id.toLowerCase()))],
    groupIds: [...new Set(groupIds.map((id) => id.toLowerCase()))],
    required: required || 1,
    excludesStarter,
  });
}

/** A subject that wants to decide. */
export interface DecidingSubject {
  readonly subject: Pick<Subject, "id" | "principal">;
  readonly isAdministrator: boolean;
  /** Ids of the groups that it is a member of, at least of those that the deciders name. */
  readonly groupIds: readonly string[];
}

/**
 * Returns whether a subject is one of those who may decide.
 * @param starter the subject that started the run or the execution
 * @param executor the subject that the execution runs as, which is left out like the starter
 */
export function mayDecide(
  { who, excludesStarter, ...named }: ApprovalDeciders,
  starter: Subject | undefined,
  { subject, isAdministrator, groupIds }: DecidingSubject,
  executor?: Subject,
): boolean {
  const isStarter = isSame(starter, subject);
  if (excludesStarter && (isStarter || isSame(executor, subject))) return false;
  switch (who) {
    case Who.USERS:
      return subject.principal === Principal.USER && isNamed(named, subject.id, groupIds);
    case Who.ADMINISTRATORS:
      return isAdministrator;
    default:
      return isStarter || isAdministrator;
  }
}

function isNamed(
  { userIds, groupIds }: Pick<ApprovalDeciders, "userIds" | "groupIds">,
  userId: string,
  groupsOfUser: readonly string[],
): boolean {
  return userIds.includes(userId) || groupIds.some((id) => groupsOfUser.includes(id));
}

function isSame(one: Subject | undefined, { id, principal }: Pick<Subject, "id" | "principal">): boolean {
  return one?.id === id && one.principal === principal;
}

/**
 * Requires that enough members of the organization can decide, no matter who starts the run. Checked
 * when deciders are written into a policy or a workflow.
 * @param field path of the deciders in the request, in JSON names
 * @param members members whose accounts are not blocked
 * @throws DomainError VALUE_UNUSABLE
 */
export function requireSatisfiable(
  chosen: ApprovalDeciders | undefined,
  members: readonly Decider[],
  field: string,
): void {
  if (!chosen) return;
  const { who, userIds, groupIds, required, excludesStarter } = deciders(chosen);
  if (who === Who.USERS && userIds.length + groupIds.length === 0)
    throw valueUnusable(
      `${field}.userIds`,
      `${field}.userIds names nobody: name users or groups, or choose others`,
    );
  for (const [name, ids] of Object.entries({ userIds, groupIds }))
    if (who !== Who.USERS && ids.length > 0)
      throw valueUnusable(
        `${field}.${name}`,
        `${field}.${name} has an effect only with WHO_USERS: leave it out`,
      );
  const fit = members.filter((member) =>
    who === Who.USERS
      ? isNamed({ userIds, groupIds }, member.userId, member.groupIds)
      : member.isAdministrator,
  );
  const needed = required + (excludesStarter ? 1 : 0);
  if (fit.length >= needed) return;
  const whom = who === Who.USERS ? "the users that it names" : "the administrators of the organization";
  throw valueUnusable(
    field,
    `${field} needs ${needed} of ${whom}, so that an approval is possible no matter who starts the run, and ${fit.length} can decide`,
  );
}

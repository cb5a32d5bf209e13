import {
  type Approval,
  ApprovalKind,
  ApprovalState,
  ApprovalDeciders_Who as Who,
} from "#gen/service/v1/approval_pb.js";

/** The person who looks at approvals, as far as it matters for the deciders. */
interface Looker {
  readonly userId: string;
  /** False when the person is certainly not an administrator. */
  readonly mayBeAdministrator: boolean;
}

/**
 * Returns, as a sentence, why a person cannot decide an approval together with others; undefined when they may be
 * able to. The server decides finally: only it knows the members of groups.
 */
export function whyNotTogether(
  { kind, state, deciders, decisions, creator, executor }: Approval,
  { userId, mayBeAdministrator }: Looker,
): string | undefined {
  if (state !== ApprovalState.PENDING) return "It has ended.";
  if (kind === ApprovalKind.QUESTION) return "A question is answered on its own page.";
  if (decisions.some(({ by }) => by?.id === userId)) return "You have decided. Others must decide, too.";
  const isStarter = creator?.id === userId;
  if (deciders?.excludesStarter && (isStarter || executor?.id === userId))
    return "The person who asked cannot decide it.";
  if (deciders?.who === Who.USERS) {
    const isNamed = deciders.userIds.includes(userId) || deciders.groupIds.length > 0;
    return isNamed ? undefined : "Other people decide it.";
  }
  if (mayBeAdministrator) return undefined;
  if (deciders?.who === Who.ADMINISTRATORS) return "Administrators decide it.";
  return isStarter ? undefined : "Only the person who asked and administrators can decide it.";
}

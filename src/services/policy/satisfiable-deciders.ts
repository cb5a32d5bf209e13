import type { ApprovalDeciders } from "#gen/service/v1/approval_pb.js";
import { notFound } from "../../domain/error.ts";
import { requireSatisfiable } from "../../domain/policy/approval-deciders.ts";
import { findGroup } from "../../store/identity/group.ts";
import { findDeciders } from "../../store/policy/decider.ts";
import type { Scope, Snapshot } from "../../store/store.ts";

/** Deciders that a request sets, and their path in it. */
export interface NamedDeciders {
  readonly deciders: ApprovalDeciders | undefined;
  readonly field: string;
}

/**
 * Requires that the members of the organization could satisfy all deciders that a request sets.
 *
 * @throws DomainError VALUE_UNUSABLE; NOT_FOUND for a group that does not exist
 */
export async function requireAllSatisfiable(
  tx: Pick<Snapshot, "db">,
  scope: Scope,
  named: readonly NamedDeciders[],
): Promise<void> {
  const idsOf = (kind: "userIds" | "groupIds") => [
    ...new Set(named.flatMap(({ deciders }) => deciders?.[kind].map((id) => id.toLowerCase()) ?? [])),
  ];
  const groupIds = idsOf("groupIds");
  for (const id of groupIds) if (!(await findGroup(tx.db, scope, id))) throw notFound("group");
  const members = await findDeciders(tx.db, scope, idsOf("userIds"), groupIds);
  for (const { deciders, field } of named) requireSatisfiable(deciders, members, field);
}

import type { Kysely } from "kysely";
import { prepared } from "./prepared.ts";
import type { MemberTable, Schema } from "./schema.ts";
import type { Scope, WriteTransaction } from "./store.ts";

const selectMember = prepared<{ id: string; organizationId: string }, MemberTable>(
  (db, { id, organizationId }) =>
    db.selectFrom("member").selectAll().where("id", "=", id).where("organization_id", "=", organizationId),
);

/** An account's membership in the scope's organization, by its user id. */
export async function findMember(
  db: Kysely<Schema>,
  scope: Scope,
  id: string,
): Promise<MemberTable | undefined> {
  const [row] = await selectMember(db, { id, organizationId: scope.organizationId });
  return row;
}

const selectMembership = prepared<{ id: string }, MemberTable>((db, { id }) =>
  db.selectFrom("member").selectAll().where("id", "=", id),
);

/** A membership of any organization, by its user id. Only for the operator, who has no scope. */
export async function findMembership(db: Kysely<Schema>, id: string): Promise<MemberTable | undefined> {
  const [row] = await selectMembership(db, { id });
  return row;
}

/** A user as the operator's list shows it. */
export interface FoundUser {
  readonly userId: string;
  readonly organizationId: string;
  readonly organizationName: string;
  readonly name: string;
  readonly email: string;
  /** 1 administrator, 2 member. */
  readonly role: number;
}

/** The users of all organizations, oldest first. Only for the operator, who has no scope. */
export async function findUsers(db: Kysely<Schema>): Promise<FoundUser[]> {
  return db
    .selectFrom("member")
    .innerJoin("organization", "organization.id", "member.organization_id")
    .innerJoin("account", "account.id", "member.account_id")
    .select([
      "member.id as userId",
      "organization.id as organizationId",
      "organization.name as organizationName",
      "account.name",
      "account.email",
      "member.role",
    ])
    .orderBy("member.id")
    .execute();
}

export async function insertMember(tx: WriteTransaction, scope: Scope, member: MemberTable): Promise<void> {
  await tx.db.insertInto("member").values(member).execute();
  tx.record({
    organizationId: scope.organizationId,
    type: "member",
    id: member.id,
    kind: "created",
    after: JSON.stringify({ accountId: member.account_id, role: member.role }),
  });
}

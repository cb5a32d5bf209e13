import { sql } from "kysely";
import { Principal, type Subject } from "#gen/service/v1/identity_pb.js";
import type { ListedRow, PagePosition } from "../../domain/page.ts";
import { checkDeadline, textAt } from "../expressions.ts";
import { firstRows, type RowOrder } from "../first-rows.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import { matchesSearch } from "../scanned-search.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import type { FoundGroup } from "./group.ts";
import type { GroupMembershipTable } from "./identity-schema.ts";

/** A membership with the name of its member. */
export interface MembershipFacts {
  readonly id: string;
  readonly groupId: string;
  readonly subjectId: string;
  readonly principal: number;
  readonly name: string;
}

/** Bytes of a membership in JSON besides the name. */
const MEMBERSHIP_BYTES = 512;

/** Maximum bytes per unit of text in JSON, where control characters are escaped. */
const MAX_BYTES_PER_UNIT = 6;

/** Returns up to `limit` memberships of a group after `after`, by id ascending. @param search folded; empty means any */
export async function findMembershipPage(
  db: Reader,
  scope: Scope,
  group: FoundGroup,
  search: string,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<MembershipFacts>[]> {
  const own = membershipsOf(db, scope)
    .where(checkDeadline())
    .where("group_membership.group_id", "=", group.id);
  let query = own;
  if (search !== "")
    query = query.where((eb) =>
      eb.or([matchesSearch("account", search), matchesSearch("service_account", search)]),
    );
  const order: RowOrder = { columns: ["group_membership.id"], direction: "asc", after: after && [after.id] };
  const rows = await firstRows(own, query.select(FACTS), order, limit);
  return rows.map((row) => ({
    position: { key: 0, id: row.id },
    bytes: MEMBERSHIP_BYTES + MAX_BYTES_PER_UNIT * row.name.length,
    read: () => row,
  }));
}

/** Returns all memberships of a group, by id ascending. */
export function findMembershipsOfGroup(
  db: Reader,
  scope: Scope,
  group: FoundGroup,
): Promise<MembershipFacts[]> {
  return membershipsOf(db, scope)
    .select(FACTS)
    .where("group_membership.group_id", "=", group.id)
    .orderBy("group_membership.id")
    .execute();
}

/** Returns the membership of a subject in a group. */
export async function findGroupMembership(
  db: Reader,
  scope: Scope,
  groupId: string,
  { id, principal }: Subject,
): Promise<MembershipFacts | undefined> {
  return membershipsOf(db, scope)
    .select(FACTS)
    .where("group_membership.group_id", "=", groupId)
    .where("group_membership.subject_id", "=", id)
    .where("group_membership.subject_principal", "=", principal)
    .executeTakeFirst();
}

/** Returns a membership by its id. */
export async function findMembershipById(
  db: Reader,
  { organizationId }: Scope,
  id: string,
): Promise<GroupMembershipTable | undefined> {
  return builderOf(db)
    .selectFrom("group_membership")
    .selectAll()
    .where("id", "=", id)
    .where("organization_id", "=", organizationId)
    .executeTakeFirst();
}

const selectOfSubject = prepared<{ organizationId: string; subjectId: string }, GroupMembershipTable>(
  (db, { organizationId, subjectId }) =>
    db
      .selectFrom("group_membership")
      .selectAll()
      .where("organization_id", "=", organizationId)
      .where("subject_id", "=", subjectId)
      .orderBy("id"),
);

/** Returns the memberships of a user or service account, oldest first. */
export function findMembershipsOf(
  db: Reader,
  { organizationId }: Scope,
  subjectId: string,
): Promise<GroupMembershipTable[]> {
  return Promise.resolve(selectOfSubject(db, { organizationId, subjectId }));
}

/** Returns the ids of the groups that a user or service account is a member of. */
export async function findGroupIdsOf(db: Reader, scope: Scope, subjectId: string): Promise<string[]> {
  return (await findMembershipsOf(db, scope, subjectId)).map(({ group_id }) => group_id);
}

/** Adds a member to a group, which has room. @param provider the identity provider that gives it; null for none */
export async function insertMembership(
  tx: WriteTransaction,
  scope: Scope,
  group: FoundGroup,
  subject: Pick<Subject, "id" | "principal">,
  provider: string | null,
): Promise<void> {
  await insertMemberships(tx, scope, group, [subject], provider);
}

/** Rows of one statement: a provider may name all members of a large group at once, and other writes wait for it. */
const ROWS_PER_STATEMENT = 500;

/** Adds members to a group, which has room. @param provider the identity provider that gives them; null for none */
export async function insertMemberships(
  tx: WriteTransaction,
  { organizationId }: Scope,
  group: FoundGroup,
  subjects: readonly Pick<Subject, "id" | "principal">[],
  provider: string | null,
): Promise<void> {
  for (const some of chunks(subjects)) {
    const rows = some.map(({ id, principal }) => ({
      id: tx.newId(),
      organization_id: organizationId,
      group_id: group.id,
      subject_id: id,
      subject_principal: principal,
      provider,
    }));
    await builderOf(tx.db).insertInto("group_membership").values(rows).execute();
    await changeCount(tx, { organizationId }, group.id, rows.length);
    for (const row of rows)
      tx.record({
        organizationId,
        type: "group_membership",
        id: row.id,
        kind: "created",
        after: membershipBody(row),
      });
  }
}

/** Removes those memberships of a group permanently whose subjects are not among `kept`. */
export async function removeOtherMemberships(
  tx: WriteTransaction,
  scope: Scope,
  group: FoundGroup,
  kept: ReadonlySet<string>,
): Promise<void> {
  const rows = await builderOf(tx.db)
    .selectFrom("group_membership")
    .selectAll()
    .where("organization_id", "=", scope.organizationId)
    .where("group_id", "=", group.id)
    .orderBy("id")
    .execute();
  const others = rows.filter(({ subject_id }) => !kept.has(subject_id));
  for (const some of chunks(others)) await removeRows(tx, scope, group.id, some);
}

/** Removes a membership permanently. */
export async function removeGroupMembership(
  tx: WriteTransaction,
  scope: Scope,
  row: GroupMembershipTable,
): Promise<void> {
  await removeRows(tx, scope, row.group_id, [row]);
}

async function removeRows(
  tx: WriteTransaction,
  { organizationId }: Scope,
  groupId: string,
  rows: readonly GroupMembershipTable[],
): Promise<void> {
  const ids = rows.map(({ id }) => id);
  await builderOf(tx.db)
    .deleteFrom("group_membership")
    .where("id", "in", ids)
    .where("organization_id", "=", organizationId)
    .execute();
  await changeCount(tx, { organizationId }, groupId, -ids.length);
  for (const row of rows)
    tx.record({
      organizationId,
      type: "group_membership",
      id: row.id,
      kind: "deleted",
      before: membershipBody(row),
    });
}

function* chunks<T>(all: readonly T[]): Iterable<readonly T[]> {
  for (let begin = 0; begin < all.length; begin += ROWS_PER_STATEMENT)
    yield all.slice(begin, begin + ROWS_PER_STATEMENT);
}

/** Removes all memberships of a user or service account that goes. */
export async function removeMembershipsOf(
  tx: WriteTransaction,
  scope: Scope,
  subjectId: string,
): Promise<void> {
  for (const row of await findMembershipsOf(tx.db, scope, subjectId))
    await removeGroupMembership(tx, scope, row);
}

async function changeCount(
  tx: WriteTransaction,
  { organizationId }: Scope,
  groupId: string,
  by: number,
): Promise<void> {
  await builderOf(tx.db)
    .updateTable("member_group")
    .set((eb) => ({ member_count: eb("member_count", "+", by) }))
    .where("id", "=", groupId)
    .where("organization_id", "=", organizationId)
    .execute();
}

const serviceAccountName = textAt("service_account.body", ["name"]);

const FACTS = [
  "group_membership.id",
  "group_membership.group_id as groupId",
  "group_membership.subject_id as subjectId",
  "group_membership.subject_principal as principal",
  sql<string>`coalesce(account.name, ${serviceAccountName}, '')`.as("name"),
] as const;

function membershipsOf(db: Reader, { organizationId }: Scope) {
  return builderOf(db)
    .selectFrom("group_membership")
    .leftJoin("member", "member.id", "group_membership.subject_id")
    .leftJoin("account", "account.id", "member.account_id")
    .leftJoin("service_account", "service_account.id", "group_membership.subject_id")
    .where("group_membership.organization_id", "=", organizationId);
}

function membershipBody({ group_id, subject_id, subject_principal, provider }: GroupMembershipTable): string {
  return JSON.stringify({
    groupId: group_id,
    subject: { id: subject_id, principal: `PRINCIPAL_${Principal[subject_principal]}` },
    ...(provider !== null && { provider }),
  });
}

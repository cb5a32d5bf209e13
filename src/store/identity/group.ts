import { type Group, GroupSchema } from "#gen/service/v1/group_pb.js";
import { hasSameAnnotations } from "../../domain/identity/annotation/annotations.ts";
import { type ListedRow, type PagePosition, positionById } from "../../domain/page.ts";
import { fold } from "../../domain/text/fold.ts";
import { checkDeadline } from "../expressions.ts";
import { firstRows, type RowOrder } from "../first-rows.ts";
import { fromBody, toBody } from "../json.ts";
import { bodyColumns, listedRows } from "../listed-row.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import { matchesSearch } from "../scanned-search.ts";
import type { Found, Reader, Scope, WriteTransaction } from "../store.ts";
import type { MemberGroupTable } from "./identity-schema.ts";

/** A group that was found in the scope of the caller. */
export type FoundGroup = Found<Group, "member_group">;

/** The conditions of a list: fields combine with AND; empty and undefined mean any. */
export interface GroupFilter {
  readonly ids: readonly string[];
  readonly isManaged: boolean | undefined;
  /** A resource that none of the groups has a role on. */
  readonly notOnResourceId?: string | undefined;
  /** Folded. */
  readonly search: string;
}

/** Returns up to `limit` groups after `after`, by id ascending. */
export async function findGroupPage(
  db: Reader,
  scope: Scope,
  filter: GroupFilter,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<FoundGroup>[]> {
  const own = builderOf(db)
    .selectFrom("member_group")
    .select(["id", "member_count", ...bodyColumns("member_group")])
    .where(checkDeadline())
    .where("organization_id", "=", scope.organizationId);
  let query = own;
  if (filter.isManaged !== undefined)
    query = query.where("provider", filter.isManaged ? "is not" : "is", null);
  if (filter.ids.length > 0) query = query.where("id", "in", filter.ids);
  const { notOnResourceId } = filter;
  if (notOnResourceId !== undefined)
    query = query.where(({ eb, exists, selectFrom }) =>
      eb.not(
        exists(
          selectFrom("role_assignment")
            .select("role_assignment.id")
            .where("role_assignment.resource_id", "=", notOnResourceId)
            .whereRef("role_assignment.group_id", "=", "member_group.id"),
        ),
      ),
    );
  if (filter.search !== "") query = query.where(matchesSearch("member_group", filter.search));
  const order: RowOrder = { columns: ["member_group.id"], direction: "asc", after: after && [after.id] };
  const rows = await firstRows(own, query, order, limit);
  return listedRows(db, "member_group", rows, positionById, groupOfRow);
}

const selectGroup = prepared<{ id: string; organizationId: string }, MemberGroupTable>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("member_group")
      .selectAll()
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

export async function findGroup(
  db: Reader,
  { organizationId }: Scope,
  id: string,
): Promise<FoundGroup | undefined> {
  const [row] = await selectGroup(db, { id, organizationId });
  return row && groupOfRow(row);
}

const selectGroupByName = prepared<{ nameFolded: string; organizationId: string }, MemberGroupTable>(
  (db, { nameFolded, organizationId }) =>
    db
      .selectFrom("member_group")
      .selectAll()
      .where("organization_id", "=", organizationId)
      .where("name_folded", "=", nameFolded),
);

/** Returns the group with a name, in either letter case. */
export async function findGroupByName(
  db: Reader,
  { organizationId }: Scope,
  name: string,
): Promise<FoundGroup | undefined> {
  const [row] = await selectGroupByName(db, { nameFolded: fold(name), organizationId });
  return row && groupOfRow(row);
}

/** Returns the number of groups of the scope's organization. */
export async function countGroups(db: Reader, { organizationId }: Scope): Promise<number> {
  const { count } = await builderOf(db)
    .selectFrom("member_group")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("organization_id", "=", organizationId)
    .executeTakeFirstOrThrow();
  return count;
}

/** Adds a group without members. @param provider the identity provider that maintains it; null for none */
export async function insertGroup(
  tx: WriteTransaction,
  { organizationId }: Scope,
  group: Group,
  provider: string | null,
): Promise<FoundGroup> {
  const { id, name } = group;
  const body = toBody(GroupSchema, group);
  await builderOf(tx.db)
    .insertInto("member_group")
    .values({
      id,
      organization_id: organizationId,
      name_folded: fold(name),
      provider,
      external_id: null,
      member_count: 0,
      search_text: searchText(group),
      body,
    })
    .execute();
  tx.record({ organizationId, type: "group", id, kind: "created", after: body });
  return group as FoundGroup;
}

/**
 * Changes name, description and annotations. The number of members, also in `after`, is not part of the stored body.
 */
export async function updateGroup(
  tx: WriteTransaction,
  { organizationId }: Scope,
  before: FoundGroup,
  after: Group,
): Promise<FoundGroup> {
  const { id, name } = before;
  const [old, body] = [bodyOf(before), bodyOf(after)];
  await builderOf(tx.db)
    .updateTable("member_group")
    .set({ name_folded: fold(after.name), search_text: searchText(after), body })
    .where("id", "=", id)
    .where("organization_id", "=", organizationId)
    .execute();
  const hasChanged = name !== after.name || before.description !== after.description;
  if (hasChanged || !hasSameAnnotations(before, after))
    tx.record({ organizationId, type: "group", id, kind: "updated", before: old, after: body });
  return after as FoundGroup;
}

/** Removes a group permanently, with its memberships. */
export async function removeGroup(
  tx: WriteTransaction,
  { organizationId }: Scope,
  group: FoundGroup,
): Promise<void> {
  const { id } = group;
  await builderOf(tx.db)
    .deleteFrom("member_group")
    .where("id", "=", id)
    .where("organization_id", "=", organizationId)
    .execute();
  tx.record({ organizationId, type: "group", id, kind: "deleted", before: bodyOf(group) });
}

function bodyOf(group: Group): string {
  return toBody(GroupSchema, { ...group, memberCount: 0 });
}

function searchText({ name, id }: Group): string {
  return `${fold(name)}\n${id}`;
}

function groupOfRow({ body, member_count }: Pick<MemberGroupTable, "body" | "member_count">): FoundGroup {
  const group = fromBody(GroupSchema, body);
  group.memberCount = member_count;
  return group as FoundGroup;
}

/** A group that is provisioned by SCIM. */
export interface ProvisionedGroup {
  readonly group: FoundGroup;
  /** Id of the group at the provider; empty for none. */
  readonly externalId: string;
}

/** The provider of groups that are provisioned by SCIM. */
export const SCIM_PROVIDER = "scim";

/**
 * Returns up to `count` groups of the scope's organization that SCIM provisions, by id, behind the first `offset`, and
 * the number of all that match.
 * @param filter undefined fields mean any; a name in either letter case
 */
export async function findProvisionedGroups(
  db: Reader,
  { organizationId }: Scope,
  filter: { readonly id?: string; readonly name?: string; readonly externalId?: string },
  offset: number,
  count: number,
): Promise<{ readonly groups: ProvisionedGroup[]; readonly total: number }> {
  let query = builderOf(db)
    .selectFrom("member_group")
    .where("organization_id", "=", organizationId)
    .where("provider", "=", SCIM_PROVIDER);
  if (filter.id !== undefined) query = query.where("id", "=", filter.id);
  if (filter.name !== undefined) query = query.where("name_folded", "=", fold(filter.name));
  if (filter.externalId !== undefined) query = query.where("external_id", "=", filter.externalId);
  const rows = await query.selectAll().orderBy("id").offset(offset).limit(count).execute();
  const { total } = await query
    .select((eb) => eb.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return {
    groups: rows.map((row) => ({ group: groupOfRow(row), externalId: row.external_id ?? "" })),
    total,
  };
}

/** Changes the id of a group at its provider. Only the accompanying change of the group is recorded. */
export async function setGroupExternalId(
  tx: WriteTransaction,
  { organizationId }: Scope,
  group: FoundGroup,
  externalId: string,
): Promise<void> {
  await builderOf(tx.db)
    .updateTable("member_group")
    .set({ external_id: externalId || null })
    .where("id", "=", group.id)
    .where("organization_id", "=", organizationId)
    .execute();
}

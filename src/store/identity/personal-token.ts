import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type PersonalAccessToken, PersonalAccessTokenSchema } from "#gen/service/v1/user_pb.js";
import { type ListedRow, type PagePosition, positionById } from "../../domain/page.ts";
import { checkDeadline } from "../expressions.ts";
import { firstOfFew } from "../first-rows.ts";
import { fromBody } from "../json.ts";
import { bodyColumns, listedRows } from "../listed-row.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope } from "../store.ts";
import type { TokenTable } from "./identity-schema.ts";

/**
 * Returns up to `limit` personal access tokens of a user after `after`, by id ascending, including
 * expired ones.
 */
export async function findPersonalTokenPage(
  db: Reader,
  scope: Scope,
  userId: string,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<PersonalAccessToken>[]> {
  const all = builderOf(db)
    .selectFrom("token")
    .select(["id", "last_used_at", ...bodyColumns("token")])
    .where(checkDeadline())
    .where("organization_id", "=", scope.organizationId)
    .where("kind", "=", "personal")
    .where("subject_id", "=", userId);
  const order = { columns: ["token.id"], direction: "asc", after: after && [after.id] } as const;
  const rows = await firstOfFew(all, order, limit);
  return listedRows(db, "token", rows, positionById, personalTokenOfRow);
}

const selectOwn = prepared<
  { id: string; organizationId: string; userId: string; kind: "personal" },
  TokenTable
>((db, { id, organizationId, userId, kind }) =>
  db
    .selectFrom("token")
    .selectAll()
    .where("id", "=", id)
    .where("organization_id", "=", organizationId)
    .where("subject_id", "=", userId)
    .where("kind", "=", kind),
);

/** Returns a user's personal access token by its id. */
export async function findOwnPersonalToken(
  db: Reader,
  scope: Scope,
  userId: string,
  id: string,
): Promise<TokenTable | undefined> {
  const [row] = await selectOwn(db, { id, organizationId: scope.organizationId, userId, kind: "personal" });
  return row;
}

/** Returns a stored personal access token as the contract shows it. */
export function personalTokenOfRow(row: Pick<TokenTable, "body" | "last_used_at">): PersonalAccessToken {
  const token = fromBody(PersonalAccessTokenSchema, row.body);
  if (row.last_used_at !== null) token.lastUsed = timestampFromMs(row.last_used_at);
  return token;
}

import { builderOf } from "../query-builder.ts";
import type { Reader } from "../store.ts";
import type { TokenTable } from "./identity-schema.ts";

/** A token as the operator's list shows it; times in milliseconds since 1970 UTC. */
export interface OperatorToken {
  readonly id: string;
  readonly kind: TokenTable["kind"];
  /** Id of the member or service account that it acts for. */
  readonly subjectId: string;
  readonly organizationName: string;
  /** Mail address of the member; null for a service account. */
  readonly email: string | null;
  readonly expiresAt: number;
  readonly lastUsedAt: number | null;
  readonly disabledAt: number | null;
}

/**
 * Returns the access tokens of users and service accounts of all organizations, oldest first. Only
 * for the operator.
 */
export async function findAccessTokens(db: Reader): Promise<OperatorToken[]> {
  return builderOf(db)
    .selectFrom("token")
    .innerJoin("organization", "organization.id", "token.organization_id")
    .leftJoin("member", "member.id", "token.subject_id")
    .leftJoin("account", "account.id", "member.account_id")
    .select([
      "token.id",
      "token.kind",
      "token.subject_id as subjectId",
      "organization.name as organizationName",
      "account.email",
      "token.expires_at as expiresAt",
      "token.last_used_at as lastUsedAt",
      "token.disabled_at as disabledAt",
    ])
    .where("token.kind", "in", ["personal", "service_account"])
    .orderBy("token.id")
    .execute();
}

/**
 * Returns a token of any kind and organization by its id. Only for the operator, who has no scope.
 */
export async function findAnyToken(db: Reader, id: string): Promise<TokenTable | undefined> {
  return builderOf(db).selectFrom("token").selectAll().where("id", "=", id).executeTakeFirst();
}

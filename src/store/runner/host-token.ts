import { timestampMs } from "@bufbuild/protobuf/wkt";
import { Principal, type Subject } from "#gen/service/v1/identity_pb.js";
import {
  type HostAuthenticationToken,
  HostAuthenticationTokenSchema,
} from "#gen/service/v1/runner_configuration_pb.js";
import { fromBody, toBody } from "../json.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import type { HostTokenTable } from "./runner-schema.ts";

/** The encrypted secrets of a host token, and the id of their key. */
export interface SealedSecrets {
  readonly keyId: string;
  readonly token: Uint8Array;
  readonly refreshToken: Uint8Array | undefined;
}

export interface StoredHostToken {
  readonly token: HostAuthenticationToken;
  readonly sealed: SealedSecrets;
}

/** The combination that identifies a token of a runner. */
export interface HostTokenKey {
  readonly runnerId: string;
  /** In lower case. */
  readonly host: string;
  readonly subject: Subject;
}

type SecretColumns = Pick<HostTokenTable, "key_id" | "sealed_token" | "sealed_refresh_token">;
type StoredColumns = SecretColumns & Pick<HostTokenTable, "body">;

const STORED_COLUMNS = ["body", "key_id", "sealed_token", "sealed_refresh_token"] as const;

const selectHostToken = prepared<{ id: string; organizationId: string }, StoredColumns>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("host_token")
      .select(STORED_COLUMNS)
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

export async function findHostToken(
  db: Reader,
  scope: Scope,
  id: string,
): Promise<StoredHostToken | undefined> {
  const [row] = await selectHostToken(db, { id, organizationId: scope.organizationId });
  return row && storedOfRow(row);
}

const selectForUse = prepared<
  { organizationId: string; runnerId: string; host: string; subjectId: string; principal: number },
  StoredColumns
>((db, { organizationId, runnerId, host, subjectId, principal }) =>
  db
    .selectFrom("host_token")
    .select(STORED_COLUMNS)
    .where("runner_id", "=", runnerId)
    .where("host", "=", host)
    .where("subject_id", "=", subjectId)
    .where("subject_principal", "=", principal)
    .where("organization_id", "=", organizationId),
);

/** Returns the token that a runner uses at a host for a subject. */
export async function findHostTokenFor(
  db: Reader,
  scope: Scope,
  { runnerId, host, subject }: HostTokenKey,
): Promise<StoredHostToken | undefined> {
  const [row] = await selectForUse(db, {
    organizationId: scope.organizationId,
    runnerId,
    host,
    subjectId: subject.id,
    principal: subject.principal,
  });
  return row && storedOfRow(row);
}

export async function findHostTokensOfRunner(
  db: Reader,
  scope: Scope,
  runnerId: string,
): Promise<HostAuthenticationToken[]> {
  const rows = await builderOf(db)
    .selectFrom("host_token")
    .select("body")
    .where("runner_id", "=", runnerId)
    .where("organization_id", "=", scope.organizationId)
    .orderBy("id")
    .execute();
  return rows.map(({ body }) => fromBody(HostAuthenticationTokenSchema, body));
}

/** Returns the tokens that runners use for a subject. */
export async function findHostTokensOfSubject(
  db: Reader,
  scope: Scope,
  { id, principal }: Pick<Subject, "id" | "principal">,
): Promise<HostAuthenticationToken[]> {
  const rows = await builderOf(db)
    .selectFrom("host_token")
    .select("body")
    .where("subject_id", "=", id)
    .where("subject_principal", "=", principal)
    .where("organization_id", "=", scope.organizationId)
    .orderBy("id")
    .execute();
  return rows.map(({ body }) => fromBody(HostAuthenticationTokenSchema, body));
}

export async function insertHostToken(
  tx: WriteTransaction,
  scope: Scope,
  { token, sealed }: StoredHostToken,
): Promise<void> {
  await builderOf(tx.db)
    .insertInto("host_token")
    .values({
      id: token.id,
      organization_id: scope.organizationId,
      runner_id: token.runnerId,
      host: token.host,
      subject_id: token.subject?.id ?? "",
      subject_principal: token.subject?.principal ?? Principal.UNSPECIFIED,
      ...changingColumns(token),
      ...secretColumns(sealed),
    })
    .execute();
  tx.record({
    organizationId: scope.organizationId,
    type: "host_token",
    id: token.id,
    kind: "created",
    after: maskSecrets(token, {
      token: "(secret)",
      ...(sealed.refreshToken && { refreshToken: "(secret)" }),
    }),
    facts: ownerFacts(token),
  });
}

/**
 * Changes the description of a token and, where `sealed` is given, its secrets.
 * @param replaced the secrets that have changed, including a refresh token that is now absent
 */
export async function updateHostToken(
  tx: WriteTransaction,
  scope: Scope,
  before: StoredHostToken,
  after: HostAuthenticationToken,
  sealed: SealedSecrets | undefined,
  replaced: { readonly token: boolean; readonly refreshToken: boolean },
): Promise<void> {
  await builderOf(tx.db)
    .updateTable("host_token")
    .set({ ...changingColumns(after), ...(sealed && secretColumns(sealed)) })
    .where("id", "=", after.id)
    .where("organization_id", "=", scope.organizationId)
    .execute();
  const refreshes = (secrets: SealedSecrets) => secrets.refreshToken !== undefined;
  tx.record({
    organizationId: scope.organizationId,
    type: "host_token",
    id: after.id,
    kind: "updated",
    before: maskSecrets(before.token, {
      token: "(secret)",
      ...(refreshes(before.sealed) && { refreshToken: "(secret)" }),
    }),
    after: maskSecrets(after, {
      token: replaced.token ? "(new secret)" : "(secret)",
      ...(refreshes(sealed ?? before.sealed) && {
        refreshToken: replaced.refreshToken ? "(new secret)" : "(secret)",
      }),
    }),
    facts: ownerFacts(after),
  });
}

export async function removeHostToken(
  tx: WriteTransaction,
  scope: Scope,
  token: HostAuthenticationToken,
): Promise<void> {
  await builderOf(tx.db)
    .deleteFrom("host_token")
    .where("id", "=", token.id)
    .where("organization_id", "=", scope.organizationId)
    .execute();
  tx.record({
    organizationId: scope.organizationId,
    type: "host_token",
    id: token.id,
    kind: "deleted",
    before: maskSecrets(token, { token: "(secret)" }),
    facts: ownerFacts(token),
  });
}

/** Returns the owner of a token for its events, which only that subject receives. */
function ownerFacts({ subject }: HostAuthenticationToken) {
  return { ownerId: subject?.id ?? null };
}

/** Records that the actor of the write read a token's secrets. */
export function recordHostTokenRead(tx: WriteTransaction, scope: Scope, id: string): void {
  tx.record({ organizationId: scope.organizationId, type: "host_token", id, kind: "read" });
}

/**
 * Masks the secrets of a token: the audit log shows that there is a secret, and when it is
 * replaced.
 */
function maskSecrets(token: HostAuthenticationToken, secrets: Readonly<Record<string, string>>): string {
  return JSON.stringify({ ...JSON.parse(toBody(HostAuthenticationTokenSchema, token)), ...secrets });
}

function changingColumns(token: HostAuthenticationToken) {
  return {
    expires_at: token.expiresAt ? timestampMs(token.expiresAt) : null,
    body: toBody(HostAuthenticationTokenSchema, token),
  };
}

/** Returns the columns of sealed secrets. */
export function secretColumns({ keyId, token, refreshToken }: SealedSecrets): SecretColumns {
  return { key_id: keyId, sealed_token: token, sealed_refresh_token: refreshToken ?? null };
}

/** Reverses {@link secretColumns}. */
export function sealedOfRow(row: SecretColumns): SealedSecrets {
  return {
    keyId: row.key_id,
    token: row.sealed_token,
    refreshToken: row.sealed_refresh_token ?? undefined,
  };
}

function storedOfRow(row: StoredColumns): StoredHostToken {
  return { token: fromBody(HostAuthenticationTokenSchema, row.body), sealed: sealedOfRow(row) };
}

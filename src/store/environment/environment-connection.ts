import {
  type EnvironmentConnection,
  EnvironmentConnection_Refusal,
  EnvironmentConnectionSchema,
} from "#gen/service/v1/environment_connection_pb.js";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import type { ConnectionCounts } from "../../domain/environment/environment-connection.ts";
import type { ListedRow } from "../../domain/page.ts";
import { checkDeadline, unindexed } from "../expressions.ts";
import { firstOfFew } from "../first-rows.ts";
import { fromBody, toBody } from "../json.ts";
import { listedRow, textColumns } from "../listed-row.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import type { EnvironmentEgressTable } from "./environment-schema.ts";

/** The counts stored with the connections of an environment. */
export interface StoredEgress extends ConnectionCounts {
  /** The creator of the environment. */
  readonly creator: { readonly id: string; readonly principal: number };
  /** Id of the action that the environment was created for; null for none. */
  readonly actionId: string | null;
  /** True if there were more connections than are stored. */
  readonly leftOut: boolean;
}

type Key = { environmentId: string; organizationId: string };

const selectEgress = prepared<Key, EnvironmentEgressTable>((db, { environmentId, organizationId }) =>
  db
    .selectFrom("environment_egress")
    .selectAll()
    .where("environment_id", "=", environmentId)
    .where(unindexed("environment_egress.organization_id"), "=", organizationId),
);

/** Returns the reported connections of an environment, which may have been removed; undefined if none were reported. */
export async function findEgress(
  db: Reader,
  { organizationId }: Scope,
  environmentId: string,
): Promise<StoredEgress | undefined> {
  const [row] = await selectEgress(db, { environmentId, organizationId });
  return (
    row && {
      creator: { id: row.creator_id, principal: row.creator_principal },
      actionId: row.action_id,
      refused: row.refused,
      allowed: row.allowed,
      leftOut: row.left_out !== 0,
    }
  );
}

/** Returns those of the given ids that connections of an environment have. */
export async function findConnectionIds(
  db: Reader,
  { organizationId }: Scope,
  environmentId: string,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const rows = await builderOf(db)
    .selectFrom("environment_connection")
    .select("id")
    .where("environment_id", "=", environmentId)
    .where("id", "in", ids)
    .where(unindexed("environment_connection.organization_id"), "=", organizationId)
    .execute();
  return new Set(rows.map(({ id }) => id));
}

/**
 * Adds connections to those of an environment.
 * @param before the stored values
 * @param after the values to store, with the numbers of all connections
 */
export async function addConnections(
  tx: WriteTransaction,
  { organizationId }: Scope,
  environmentId: string,
  connections: readonly EnvironmentConnection[],
  { before, after }: { readonly before: StoredEgress | undefined; readonly after: StoredEgress },
): Promise<void> {
  const columns = { refused: after.refused, allowed: after.allowed, left_out: Number(after.leftOut) };
  const db = builderOf(tx.db);
  await db
    .insertInto("environment_egress")
    .values({
      environment_id: environmentId,
      organization_id: organizationId,
      creator_id: after.creator.id,
      creator_principal: after.creator.principal,
      action_id: after.actionId,
      ...columns,
    })
    .onConflict((conflict) => conflict.column("environment_id").doUpdateSet(columns))
    .execute();
  if (connections.length === 0) return;
  const last = (before?.refused ?? 0) + (before?.allowed ?? 0);
  const rows = connections.map((connection, index) => ({
    environment_id: environmentId,
    organization_id: organizationId,
    place: last + index + 1,
    id: connection.id,
    body: toBody(EnvironmentConnectionSchema, connection),
  }));
  await db.insertInto("environment_connection").values(rows).execute();
}

/** Records that the work in an environment was denied access to hosts. The environment itself does not change. */
export function recordRefusals(
  tx: WriteTransaction,
  { organizationId }: Scope,
  { id, metadata }: Environment,
  refused: readonly EnvironmentConnection[],
): void {
  const connections = refused.map(({ host, port, rule, refusal }) => ({
    host,
    port,
    rule,
    refusal: EnvironmentConnection_Refusal[refusal] ?? "",
  }));
  for (const { refusal } of connections)
    tx.countOutcome({ of: "isolation refusal", as: refusal.toLowerCase() });
  tx.record({
    organizationId,
    type: "environment",
    id,
    kind: "updated",
    operation: "environment/connections_refused",
    before: {},
    after: { connections },
    facts: { environmentId: id, creatorId: metadata?.creator?.id ?? null },
  });
}

/** The position of a page of connections. */
export interface ConnectionQuery {
  readonly environmentId: string;
  /** Position of the last connection on the previous page. */
  readonly after: number | undefined;
  readonly limit: number;
}

/** Returns connections of an environment in their order. */
export async function findConnectionPage(
  db: Reader,
  { organizationId }: Scope,
  { environmentId, after, limit }: ConnectionQuery,
): Promise<ListedRow<EnvironmentConnection>[]> {
  const query = builderOf(db)
    .selectFrom("environment_connection")
    .select(["place", ...textColumns("environment_connection.body")])
    .where(checkDeadline())
    .where("environment_id", "=", environmentId)
    .where(unindexed("environment_connection.organization_id"), "=", organizationId);
  const order = {
    columns: ["environment_connection.place"],
    direction: "asc",
    after: after === undefined ? undefined : [after],
  } as const;
  const rows = await firstOfFew(query, order, limit);
  return rows.map((row) =>
    listedRow(
      row,
      { key: row.place, id: environmentId },
      async () => (await selectConnection(db, { environmentId, place: row.place }))[0]?.body,
      ({ body }) => fromBody(EnvironmentConnectionSchema, body),
    ),
  );
}

const selectConnection = prepared<{ environmentId: string; place: number }, { body: string }>(
  (db, { environmentId, place }) =>
    db
      .selectFrom("environment_connection")
      .select("body")
      .where("environment_id", "=", environmentId)
      .where("place", "=", place),
);

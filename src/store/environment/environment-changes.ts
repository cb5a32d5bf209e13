import { createHash } from "node:crypto";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type EnvironmentChanges,
  EnvironmentChangesSchema,
  type EnvironmentFileDiff,
  EnvironmentFileDiffSchema,
} from "#gen/service/v1/environment_changes_pb.js";
import type { ListedRow } from "../../domain/page.ts";
import { checkDeadline, unindexed } from "../expressions.ts";
import { firstOfFew } from "../first-rows.ts";
import { fromBody, toBody } from "../json.ts";
import { listedRow, textColumns } from "../listed-row.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import type { EnvironmentChangesTable, EnvironmentFileDiffTable } from "./environment-schema.ts";

/** A diff against one base, whose files have rows of their own. */
export interface StoredDiff {
  /** DiffBase by number. */
  readonly base: number;
  readonly digest: string;
  readonly filesLeftOut: number;
}

/** The changes of an environment, with the values that only some callers see. */
export interface StoredChanges {
  readonly changes: EnvironmentChanges;
  readonly diffs: readonly StoredDiff[];
  readonly creator: { readonly id: string; readonly principal: number };
  /** Id of the action that the environment was created for; null for none. */
  readonly actionId: string | null;
  /** Number of reports that changed anything. */
  readonly version: number;
}

type Key = { environmentId: string; organizationId: string };

const selectChanges = prepared<Key, EnvironmentChangesTable>((db, { environmentId, organizationId }) =>
  db
    .selectFrom("environment_changes")
    .selectAll()
    .where("environment_id", "=", environmentId)
    .where(unindexed("environment_changes.organization_id"), "=", organizationId),
);

/** Returns the last report of an environment, which may have been removed; undefined if there was none. */
export async function findChanges(
  db: Reader,
  { organizationId }: Scope,
  environmentId: string,
): Promise<StoredChanges | undefined> {
  const [row] = await selectChanges(db, { environmentId, organizationId });
  return row && changesOfRow(row);
}

/** Returns the last reports of environments, by their ids. */
export async function findChangesOf(
  db: Reader,
  { organizationId }: Scope,
  environmentIds: readonly string[],
): Promise<ReadonlyMap<string, StoredChanges>> {
  if (environmentIds.length === 0) return new Map();
  const rows = await builderOf(db)
    .selectFrom("environment_changes")
    .selectAll()
    .where("environment_id", "in", environmentIds)
    .where(unindexed("environment_changes.organization_id"), "=", organizationId)
    .execute();
  return new Map(rows.map((row) => [row.environment_id, changesOfRow(row)]));
}

function changesOfRow(row: EnvironmentChangesTable): StoredChanges {
  const changes = fromBody(EnvironmentChangesSchema, row.body);
  // A report without other changes is written only here.
  changes.refreshedAt = timestampFromMs(row.refreshed_at);
  return {
    changes,
    diffs: JSON.parse(row.diffs),
    creator: { id: row.creator_id, principal: row.creator_principal },
    actionId: row.action_id,
    version: row.version,
  };
}

/** A diff to store, with its files in order, each as the text of EnvironmentFileDiff. */
export interface NewDiff extends StoredDiff {
  readonly bodies: readonly string[];
}

/** Returns a diff in its stored form, with a digest of its contents. */
export function newDiff(base: number, files: readonly EnvironmentFileDiff[], filesLeftOut: number): NewDiff {
  const bodies = files.map((file) => toBody(EnvironmentFileDiffSchema, file));
  const digest = createHash("sha256")
    .update(`${filesLeftOut}\n${bodies.join("\n")}`)
    .digest("hex");
  return { base, digest, filesLeftOut, bodies };
}

/**
 * Stores the changes of an environment, replacing the stored ones. Wakes no listeners.
 * @param before the stored changes
 */
export async function storeChanges(
  tx: WriteTransaction,
  { organizationId }: Scope,
  after: Omit<StoredChanges, "diffs" | "version">,
  diffs: readonly NewDiff[],
  before: StoredChanges | undefined,
): Promise<void> {
  const { environmentId } = after.changes;
  const body = toBody(EnvironmentChangesSchema, after.changes);
  const stored = diffs.map(({ base, digest, filesLeftOut }) => ({ base, digest, filesLeftOut }));
  const columns = {
    refreshed_at: tx.now,
    version: (before?.version ?? 0) + 1,
    body,
    diffs: JSON.stringify(stored),
  };
  await builderOf(tx.db)
    .insertInto("environment_changes")
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
  for (const { base, digest, bodies } of diffs) {
    if (before?.diffs.some((known) => known.base === base && known.digest === digest)) continue;
    await replaceFiles(tx, { organizationId, environmentId, base }, bodies);
  }
  for (const { base } of before?.diffs ?? []) {
    if (!diffs.some((known) => known.base === base))
      await replaceFiles(tx, { organizationId, environmentId, base }, []);
  }
}

/** Number of rows per statement; each has five values, and engines limit the values of a statement. */
const ROWS_AT_ONCE = 200;

async function replaceFiles(
  tx: WriteTransaction,
  { organizationId, environmentId, base }: { organizationId: string; environmentId: string; base: number },
  bodies: readonly string[],
): Promise<void> {
  const db = builderOf(tx.db);
  await db
    .deleteFrom("environment_file_diff")
    .where("environment_id", "=", environmentId)
    .where("base", "=", base)
    .execute();
  for (let first = 0; first < bodies.length; first += ROWS_AT_ONCE) {
    const rows = bodies.slice(first, first + ROWS_AT_ONCE).map((body, index) => ({
      environment_id: environmentId,
      organization_id: organizationId,
      base,
      place: first + index + 1,
      body,
    }));
    await db.insertInto("environment_file_diff").values(rows).execute();
  }
}

const setRefreshed = prepared<Key & { now: number }, unknown>((db, { environmentId, organizationId, now }) =>
  db
    .updateTable("environment_changes")
    .set({ refreshed_at: now })
    .where("environment_id", "=", environmentId)
    .where(unindexed("environment_changes.organization_id"), "=", organizationId),
);

/** Records that an environment was checked and has not changed. */
export async function touchChanges(
  tx: WriteTransaction,
  { organizationId }: Scope,
  environmentId: string,
): Promise<void> {
  await setRefreshed(tx.db, { environmentId, organizationId, now: tx.now });
}

/** The position of a page of a diff. */
export interface FileDiffQuery {
  readonly environmentId: string;
  /** DiffBase by number. */
  readonly base: number;
  /** Position of the last file on the previous page. */
  readonly after: number | undefined;
  readonly limit: number;
}

/** Returns files of a diff in their order. */
export async function findFileDiffPage(
  db: Reader,
  { organizationId }: Scope,
  { environmentId, base, after, limit }: FileDiffQuery,
): Promise<ListedRow<EnvironmentFileDiff>[]> {
  const query = builderOf(db)
    .selectFrom("environment_file_diff")
    .select(["place", ...textColumns("environment_file_diff.body")])
    .where(checkDeadline())
    .where("environment_id", "=", environmentId)
    .where("base", "=", base)
    .where(unindexed("environment_file_diff.organization_id"), "=", organizationId);
  const order = {
    columns: ["environment_file_diff.place"],
    direction: "asc",
    after: after === undefined ? undefined : [after],
  } as const;
  const rows = await firstOfFew(query, order, limit);
  return rows.map((row) =>
    listedRow(
      row,
      { key: row.place, id: environmentId },
      async () => (await selectFileDiff(db, { environmentId, base, place: row.place }))[0]?.body,
      ({ body }) => fromBody(EnvironmentFileDiffSchema, body),
    ),
  );
}

const selectFileDiff = prepared<{ environmentId: string; base: number; place: number }, { body: string }>(
  (db, { environmentId, base, place }) =>
    db
      .selectFrom("environment_file_diff")
      .select("body")
      .where("environment_id", "=", environmentId)
      .where("base", "=", base)
      .where("place", "=", place),
);

const selectDiffTexts = prepared<Key, DiffText>((db, { environmentId, organizationId }) =>
  db
    .selectFrom("environment_file_diff")
    .select(["base", "body"])
    .where("environment_id", "=", environmentId)
    .where(unindexed("environment_file_diff.organization_id"), "=", organizationId),
);

/** A file of a diff: DiffBase by number, and the text of EnvironmentFileDiff. */
export type DiffText = Pick<EnvironmentFileDiffTable, "base" | "body">;

/** Returns the files of all diffs of an environment, which are at most 4 MiB. */
export function findDiffTexts(
  db: Reader,
  { organizationId }: Scope,
  environmentId: string,
): Promise<DiffText[]> {
  return selectDiffTexts(db, { environmentId, organizationId });
}

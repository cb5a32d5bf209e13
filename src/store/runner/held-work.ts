import type { ExpressionBuilder } from "kysely";
import { WorkKindSchema } from "#gen/runner/v1/work_pb.js";
import type { PolicySet } from "../../domain/runner/kept-policies.ts";
import { prepared } from "../prepared.ts";
import type { Schema } from "../schema.ts";
import type { Handle, Reader, Scope, WriteTransaction } from "../store.ts";
import type { WorkTable } from "./runner-schema.ts";
import {
  AGENT_AT_REST,
  AGENT_WITH_ENVIRONMENT,
  API_AGENT_WITH_ENVIRONMENT,
  readyWorkOf,
  type StoredWork,
} from "./work.ts";

/** Work that is alike in who may take it. */
export type HeldWork = Pick<WorkTable, "runner_id" | "environment_class_id" | "needs">;

/** Held work that is alike, and how much of it waits for a runner to be connected. */
export interface HeldGroup extends HeldWork {
  readonly organization_id: string;
  readonly waiting: number;
  readonly total: number;
}

type Works = ExpressionBuilder<Schema, "work">;

/** The condition of the index of held work, as that says it. */
const isHeld = (eb: Works) => eb("needs", "<>", eb.lit(0));

const updateNeeds = prepared<{ id: string; needs: number }, unknown>((db, { id, needs }) =>
  db.updateTable("work").set({ needs }).where("id", "=", id),
);

/** Stores what work needs of its runner, and wakes those that wait for it. */
export async function setNeeds(
  tx: WriteTransaction,
  { organizationId }: Scope,
  { id, kind }: Pick<StoredWork, "id" | "kind">,
  needs: PolicySet,
): Promise<void> {
  await updateNeeds(tx.db, { id, needs });
  tx.touch(readyWorkOf(organizationId, kind));
}

const clearNeeds = (leased: "is" | "is not") =>
  prepared<{ organizationId: string }, unknown>((db, { organizationId }) =>
    db
      .updateTable("work")
      .set({ needs: 0, waiting_since: null })
      .where("organization_id", "=", organizationId)
      .where("leased_by", leased, null)
      .where(isHeld),
  );

/** Each finds its rows by an index of theirs, where both together would read all work. */
const clearNeedsOfAll = [clearNeeds("is"), clearNeeds("is not")];

/** Opens all held work of an organization to every runner again, since its policies have changed. */
export async function openHeldWork(tx: WriteTransaction, { organizationId }: Scope): Promise<void> {
  for (const clear of clearNeedsOfAll) await clear(tx.db, { organizationId });
  const kinds = WorkKindSchema.values.map(({ number }) => number);
  for (const kind of [...kinds, AGENT_WITH_ENVIRONMENT, API_AGENT_WITH_ENVIRONMENT])
    tx.touch(readyWorkOf(organizationId, kind));
}

const updateWaiting = prepared<{ id: string; since: number }, unknown>((db, { id, since }) =>
  db.updateTable("work").set({ waiting_since: since }).where("id", "=", id),
);

/** Stores since when work waits for a runner that keeps what it needs. */
export async function setWaiting(tx: WriteTransaction, id: Handle<"work">, since: number): Promise<void> {
  await updateWaiting(tx.db, { id, since });
}

interface OfGroup {
  readonly organizationId: string;
  readonly runnerId: string;
  readonly classId: string;
  readonly needs: number;
  readonly atRest: number;
}

function valuesOf({ organizationId }: Scope, group: HeldWork): OfGroup {
  const { runner_id, environment_class_id, needs } = group;
  const [runnerId, classId] = [runner_id ?? "", environment_class_id ?? ""];
  return { organizationId, runnerId, classId, needs, atRest: AGENT_AT_REST };
}

const isOfGroup = (group: OfGroup) => (eb: Works) =>
  eb.and([
    eb("needs", "=", group.needs),
    eb(eb.fn.coalesce("runner_id", eb.val("")), "=", group.runnerId),
    eb(eb.fn.coalesce("environment_class_id", eb.val("")), "=", group.classId),
    eb("kind", "<>", group.atRest),
  ]);

const selectUntold = prepared<OfGroup & { limit: number }, StoredWork>((db, group) =>
  db
    .selectFrom("work")
    .selectAll()
    .where("organization_id", "=", group.organizationId)
    .where("leased_by", "is", null)
    .where(isHeld)
    .where(isOfGroup(group))
    .where("waiting_since", "is", null)
    .limit(group.limit),
);

/** Returns up to `limit` pieces of held work that do not wait for a runner to be connected yet. */
export async function findUntoldWork(
  db: Reader,
  scope: Scope,
  group: HeldWork,
  limit: number,
): Promise<StoredWork[]> {
  return selectUntold(db, { ...valuesOf(scope, group), limit });
}

const clearWaiting = prepared<OfGroup, unknown>((db, group) =>
  db
    .updateTable("work")
    .set({ waiting_since: null })
    .where("organization_id", "=", group.organizationId)
    .where("leased_by", "is", null)
    .where(isHeld)
    .where(isOfGroup(group))
    .where("waiting_since", "is not", null),
);

/** Ends the wait of held work that is alike: a runner that may take it is connected. */
export async function endWaiting(tx: WriteTransaction, scope: Scope, group: HeldWork): Promise<void> {
  await clearWaiting(tx.db, valuesOf(scope, group));
}

const selectLongWaits = prepared<{ cutoff: number; limit: number }, StoredWork>((db, { cutoff, limit }) =>
  db
    .selectFrom("work")
    .selectAll()
    .where("waiting_since", "is not", null)
    .where("waiting_since", "<=", cutoff)
    .where("leased_by", "is", null)
    .orderBy("waiting_since")
    .limit(limit),
);

/**
 * Returns up to `limit` pieces of work that wait for a runner since `cutoff` or longer. For the system, so without a
 * scope.
 */
export async function findLongWaits(db: Reader, cutoff: number, limit: number): Promise<StoredWork[]> {
  return selectLongWaits(db, { cutoff, limit });
}

const selectGroups = prepared<{ atRest: number }, HeldGroup>((db, { atRest }) =>
  db
    .selectFrom("work")
    .select(["organization_id", "runner_id", "environment_class_id", "needs"])
    .select(({ fn }) => [fn.count<number>("waiting_since").as("waiting"), fn.countAll<number>().as("total")])
    .where("leased_by", "is", null)
    .where(isHeld)
    .where("kind", "<>", atRest)
    .groupBy(["organization_id", "runner_id", "environment_class_id", "needs"]),
);

/** Returns all held work, of all organizations, by what is alike. For the system, so without a scope. */
export async function findHeldGroups(db: Reader): Promise<HeldGroup[]> {
  return selectGroups(db, { atRest: AGENT_AT_REST });
}

import { type ExpressionBuilder, sql } from "kysely";
import { WorkKindSchema } from "#gen/runner/v1/work_pb.js";
import { EVERY_POLICY, type PolicySet, policiesWithout } from "../../domain/runner/kept-policies.ts";
import { onlyBits } from "../expressions.ts";
import { prepared } from "../prepared.ts";
import type { Schema } from "../schema.ts";
import type { Handle, Reader, Scope, WriteTransaction } from "../store.ts";
import type { WorkTable } from "./runner-schema.ts";
import {
  AGENT_PARKED,
  AGENT_WITH_ENVIRONMENT,
  API_AGENT_WITH_ENVIRONMENT,
  readyWorkOf,
  type StoredWork,
} from "./work.ts";

/** Work with the same conditions for its runner. */
export type HeldWork = Pick<WorkTable, "kind" | "runner_id" | "environment_class_id" | "needs">;

/** Held work with the same conditions, and how much of it waits for a runner to connect. */
export interface HeldGroup extends HeldWork {
  readonly organization_id: string;
  readonly waiting: number;
  readonly total: number;
}

type Works = ExpressionBuilder<Schema, "work">;

/** The condition of the index of held work, exactly as the index defines it. */
const isHeld = (eb: Works) => eb("needs", "<>", eb.lit(0));

const selectNeeds = prepared<Scope, { needs: number | null }>((db, { organizationId }) => {
  const held = () =>
    db
      .selectFrom("work")
      .select(({ fn }) => fn.min<number | null>("work.needs").as("needs"))
      .where("organization_id", "=", organizationId)
      .where("leased_by", "is", null)
      .where(isHeld);
  // Steps from value to value in the index, and reads no more rows than there are distinct values.
  return db
    .withRecursive("held(needs)", (query) =>
      query
        .selectFrom(held().as("least"))
        .select("needs")
        .unionAll(
          query
            .selectFrom("held")
            .select(held().where("work.needs", ">", sql.ref<number>("held.needs")).as("needs"))
            .where("held.needs", "is not", null),
        ),
    )
    .selectFrom("held")
    .select("needs")
    .where("needs", "is not", null);
});

/** Returns each set that held work of an organization needs, once. */
export async function findHeldNeeds(db: Reader, { organizationId }: Scope): Promise<PolicySet[]> {
  return (await selectNeeds(db, { organizationId })).map(({ needs }) => needs ?? 0);
}

const updateNeeds = prepared<{ id: string; needs: number }, unknown>((db, { id, needs }) =>
  db.updateTable("work").set({ needs, waiting_since: null }).where("id", "=", id),
);

/** Stores what work needs of its runner from now on, and wakes those that wait for it. */
export async function setNeeds(
  tx: WriteTransaction,
  { organizationId }: Scope,
  { id, kind }: Pick<StoredWork, "id" | "kind">,
  needs: PolicySet,
): Promise<void> {
  await updateNeeds(tx.db, { id, needs });
  tx.touch(readyWorkOf(organizationId, kind));
}

const removeNeeds = (leased: "is" | "is not") =>
  prepared<{ organizationId: string; removed: number; rest: number }, unknown>(
    (db, { organizationId, removed, rest }) =>
      db
        .updateTable("work")
        .set({ needs: onlyBits("work.needs", rest), waiting_since: null })
        .where("organization_id", "=", organizationId)
        .where("leased_by", leased, null)
        .where(isHeld)
        .where(onlyBits("work.needs", removed), "<>", 0),
  );

/** Each finds its rows by an index of theirs, where both together would read all work. */
const removeNeedsOfAll = [removeNeeds("is"), removeNeeds("is not")];

/**
 * Offers held work of an organization to more runners, since its policies demand less. Only work that has needed what is
 * removed begins to wait again.
 */
export async function endNeeds(
  tx: WriteTransaction,
  { organizationId }: Scope,
  removed: PolicySet,
): Promise<void> {
  const rest = policiesWithout(EVERY_POLICY, removed);
  for (const remove of removeNeedsOfAll) await remove(tx.db, { organizationId, removed, rest });
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
  readonly kind: number;
  readonly runnerId: string;
  readonly classId: string;
  readonly needs: number;
}

function valuesOf({ organizationId }: Scope, group: HeldWork): OfGroup {
  const { kind, runner_id, environment_class_id, needs } = group;
  const [runnerId, classId] = [runner_id ?? "", environment_class_id ?? ""];
  return { organizationId, kind, runnerId, classId, needs };
}

const isOfGroup = (group: OfGroup) => (eb: Works) =>
  eb.and([
    eb("needs", "=", group.needs),
    eb("kind", "=", group.kind),
    eb(eb.fn.coalesce("runner_id", eb.val("")), "=", group.runnerId),
    eb(eb.fn.coalesce("environment_class_id", eb.val("")), "=", group.classId),
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
export async function findUnnotifiedWork(
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

const selectGroups = prepared<{ parked: number }, HeldGroup>((db, { parked }) =>
  db
    .selectFrom("work")
    .select(["organization_id", "kind", "runner_id", "environment_class_id", "needs"])
    .select(({ fn }) => [fn.count<number>("waiting_since").as("waiting"), fn.countAll<number>().as("total")])
    .where("leased_by", "is", null)
    .where(isHeld)
    .where("kind", "<>", parked)
    .groupBy(["organization_id", "needs", "kind", "environment_class_id", "runner_id"]),
);

/** Returns all held work, of all organizations, by what is alike. For the system, so without a scope. */
export async function findHeldGroups(db: Reader): Promise<HeldGroup[]> {
  return selectGroups(db, { parked: AGENT_PARKED });
}

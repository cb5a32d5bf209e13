import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { prepared } from "../prepared.ts";
import type { Handle, Reader, Scope, WriteTransaction } from "../store.ts";
import { AGENT_PARKED, findLastTurn, readyWorkOf, STOP_GIVE_BACK, type StoredWork } from "./work.ts";

const updateIdleSince = prepared<{ id: string; idleSince: number | null }, unknown>((db, { id, idleSince }) =>
  db.updateTable("work").set({ idle_since: idleSince }).where("id", "=", id),
);

/** Records since when a leased agent execution could release its slot; null while it cannot. */
export async function setIdleSince(
  tx: WriteTransaction,
  id: Handle<"work">,
  idleSince: number | null,
): Promise<void> {
  await updateIdleSince(tx.db, { id, idleSince });
}

const updateStop = prepared<{ id: string; stop: number }, unknown>((db, { id, stop }) =>
  db.updateTable("work").set({ stop, idle_since: null }).where("id", "=", id).where("stop", "=", 0),
);

/** Asks the holder of leased work on an agent execution to release its slot. */
export async function askToGiveBack(
  tx: WriteTransaction,
  { id, subject_id: subjectId }: Pick<StoredWork, "id" | "subject_id">,
): Promise<void> {
  await updateStop(tx.db, { id, stop: STOP_GIVE_BACK });
  tx.touch(subjectId);
}

const setParked = prepared<{ id: string; kind: number }, unknown>((db, { id, kind }) =>
  db
    .updateTable("work")
    .set({
      kind,
      leased_by: null,
      instance_id: null,
      expires_at: null,
      stop: 0,
      attempt: 0,
      not_before: 0,
      idle_since: null,
    })
    .where("id", "=", id),
);

/** Ends the lease of an agent execution that has released its slot: its work is not assigned until it is woken. */
export async function parkWork(tx: WriteTransaction, id: Handle<"work">): Promise<void> {
  await setParked(tx.db, { id, kind: AGENT_PARKED });
}

const selectParked = prepared<{ subjectId: string; kind: number }, StoredWork>((db, { subjectId, kind }) =>
  db.selectFrom("work").selectAll().where("kind", "=", kind).where("subject_id", "=", subjectId),
);

const setReady = prepared<{ id: string; turn: number; kind: number }, unknown>((db, { id, turn, kind }) =>
  db.updateTable("work").set({ kind, turn }).where("id", "=", id),
);

/**
 * Puts the work on an agent execution that has released its slot back into the queue, at the end of its group like new
 * work; other work does not change.
 */
export async function unparkWork(
  tx: WriteTransaction,
  executionId: Handle<"agent_execution">,
): Promise<void> {
  const [parked] = await selectParked(tx.db, { subjectId: executionId, kind: AGENT_PARKED });
  if (!parked) return;
  const { id, group_id: groupId, organization_id: organizationId } = parked;
  const turn = (await findLastTurn(tx.db, { organizationId }, groupId)) + 1;
  await setReady(tx.db, { id, turn, kind: WorkKind.AGENT });
  tx.touch(readyWorkOf(organizationId, WorkKind.AGENT));
}

/** The agent executions that a runner holds and that could release their slots. */
export interface IdleLeases {
  readonly organizationId: string;
  readonly runnerId: string;
  /** Time since when the first of them could. */
  readonly since: number;
}

const selectIdle = prepared<object, IdleLeases>((db) =>
  db
    .selectFrom("work")
    .select(({ fn }) => [
      "organization_id as organizationId",
      "leased_by as runnerId",
      fn.min("idle_since").as("since"),
    ])
    .where("idle_since", "is not", null)
    .where("leased_by", "is not", null)
    .groupBy(["organization_id", "leased_by"])
    .$castTo<IdleLeases>(),
);

/** Returns the runners that hold idle agent executions, of all organizations. For the system, so without a scope. */
export async function findIdleLeases(db: Reader): Promise<IdleLeases[]> {
  return selectIdle(db, {});
}

const selectIdleOf = prepared<
  Omit<IdleLeases, "since"> & { limit: number },
  { id: string; idle_since: number }
>((db, { organizationId, runnerId, limit }) =>
  db
    .selectFrom("work")
    .select(["id", "idle_since"])
    .where("organization_id", "=", organizationId)
    .where("leased_by", "=", runnerId)
    .where("idle_since", "is not", null)
    .orderBy("idle_since")
    .limit(limit)
    .$castTo<{ id: string; idle_since: number }>(),
);

/** Returns the leases of a runner on idle agent executions, those that have waited longest first. */
export async function findIdleLeasesOf(
  db: Reader,
  { organizationId }: Scope,
  runnerId: string,
  limit: number,
): Promise<{ readonly id: string; readonly idle_since: number }[]> {
  return selectIdleOf(db, { organizationId, runnerId, limit });
}

/** The agent executions that a runner holds. */
export interface HeldAgents {
  readonly held: number;
  /** Number of them whose slots were requested back. */
  readonly asked: number;
}

const countHeld = prepared<Omit<IdleLeases, "since">, HeldAgents>((db, { organizationId, runnerId }) =>
  db
    .selectFrom("work")
    .select(({ fn }) => [
      fn.countAll<number>().as("held"),
      fn.countAll<number>().filterWhere("stop", "=", STOP_GIVE_BACK).as("asked"),
    ])
    .where("leased_by", "=", runnerId)
    .where("organization_id", "=", organizationId)
    .where("kind", "=", WorkKind.AGENT),
);

/** Counts the agent executions that a runner holds. */
export async function countHeldAgents(
  db: Reader,
  { organizationId }: Scope,
  runnerId: string,
): Promise<HeldAgents> {
  const [row] = await countHeld(db, { organizationId, runnerId });
  return { held: Number(row?.held ?? 0), asked: Number(row?.asked ?? 0) };
}

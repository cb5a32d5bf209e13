import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { prepared, preparedForRows } from "../prepared.ts";
import type { Found, Handle, Reader, Scope, WriteTransaction } from "../store.ts";
import type { WorkTable } from "./runner-schema.ts";

/**
 * The stored kind of work on a new environment that an agent execution waits for. Its subject is the environment.
 * Runners that accept both together lease it as work on the agent execution, others as work on the environment; the
 * row has that kind and that subject from then on.
 */
export const AGENT_WITH_ENVIRONMENT = 1_001;

/** The same for an agent that is defined by the API: only runners that accept those get it. */
export const API_AGENT_WITH_ENVIRONMENT = 1_003;

/** Kinds of work on a new environment that an agent execution waits for. */
export type WithAgentKind = typeof AGENT_WITH_ENVIRONMENT | typeof API_AGENT_WITH_ENVIRONMENT;

/**
 * The stored kind of work on an agent execution that waits for input and has released its slot. It is not assigned; an
 * input makes it work on the agent execution again.
 */
export const AGENT_PARKED = 1_002;

/** Values of the column `stop`. */
export const STOP = 1;
export const STOP_GIVE_BACK = 2;

/** A piece of work in the queue, as it is stored. */
export type StoredWork = Found<WorkTable, "work">;

/** Work for a runner; ids are those of the columns of WorkTable. */
export interface NewWork {
  readonly kind: WorkKind | WithAgentKind;
  readonly subjectId: string;
  readonly groupId: string;
  readonly accountId: string | null;
  readonly runnerId: string | null;
  readonly environmentClassId: string | null;
  /** Number of previous attempts; default none. */
  readonly attempt?: number;
}

/**
 * Returns the topic that is touched when there may be more work of a kind for the runners of an organization: see
 * WriteTransaction.touch. Runners that wait for other kinds are not woken.
 */
export function readyWorkOf(organizationId: string, kind: number): string {
  return `work ${kind} of ${organizationId}`;
}

/** Returns the topic that is touched when leased work of a runner is to stop. */
export function stopsFor(runnerId: string): string {
  return `stops for ${runnerId}`;
}

const selectLastTurns = prepared<{ organizationId: string; groupId: string }, { turn: number | null }>(
  (db, { organizationId, groupId }) =>
    db
      .selectFrom("work_turn")
      .select("turn")
      .where("organization_id", "=", organizationId)
      .unionAll(
        db
          .selectFrom("work")
          .select(({ fn }) => fn.max("turn").as("turn"))
          .where("group_id", "=", groupId),
      ),
);

/** Returns the turn after which the next work of a group follows: its last one, or the current one. */
export async function findLastTurn(db: Reader, { organizationId }: Scope, groupId: string): Promise<number> {
  const turns = await selectLastTurns(db, { organizationId, groupId });
  return Math.max(0, ...turns.map(({ turn }) => turn ?? 0));
}

const insertRows = preparedForRows<WorkTable>((db, rows) =>
  db.insertInto("work").values(
    rows.map((row) => ({
      id: row.id,
      organization_id: row.organization_id,
      kind: row.kind,
      subject_id: row.subject_id,
      group_id: row.group_id,
      account_id: row.account_id,
      runner_id: row.runner_id,
      environment_class_id: row.environment_class_id,
      turn: row.turn,
      not_before: row.not_before,
      attempt: row.attempt,
      fence: row.fence,
      leased_by: row.leased_by,
      expires_at: row.expires_at,
      stop: row.stop,
      idle_since: row.idle_since,
      needs: row.needs,
      waiting_since: row.waiting_since,
    })),
  ),
);

/**
 * Adds work to the queue, at the end of its group. It gets the next turn of the group, or the current turn if all of
 * the group's work so far has been assigned. Groups thus alternate, however much work each of them has. The subject
 * must have no open work of this kind.
 */
export async function insertWork(tx: WriteTransaction, scope: Scope, work: NewWork): Promise<void> {
  await insertWorks(tx, scope, [work], await findLastTurn(tx.db, scope, work.groupId));
}

/**
 * Adds several pieces of work of one group, in their order, as {@link insertWork} adds one.
 * @param lastTurn that of {@link findLastTurn}
 */
export async function insertWorks(
  tx: WriteTransaction,
  { organizationId }: Scope,
  works: readonly NewWork[],
  lastTurn: number,
): Promise<void> {
  const rows = works.map((work, index) => ({
    id: tx.newId(),
    organization_id: organizationId,
    kind: work.kind,
    subject_id: work.subjectId,
    group_id: work.groupId,
    account_id: work.accountId,
    runner_id: work.runnerId,
    environment_class_id: work.environmentClassId,
    turn: lastTurn + index + 1,
    not_before: 0,
    attempt: work.attempt ?? 0,
    fence: 0,
    leased_by: null,
    instance_id: null,
    expires_at: null,
    stop: 0,
    idle_since: null,
    needs: 0,
    waiting_since: null,
  }));
  await insertRows(tx.db, rows);
  for (const { kind } of works) tx.touch(readyWorkOf(organizationId, kind));
}

interface Subject {
  readonly organizationId: string;
  readonly kind: WorkKind;
  readonly subjectId: string;
}

const selectWork = prepared<Subject & { otherKind: number; thirdKind: number }, StoredWork>(
  (db, { organizationId, kind, otherKind, thirdKind, subjectId }) =>
    db
      .selectFrom("work")
      .selectAll()
      .where("kind", "in", [kind, otherKind, thirdKind])
      .where("subject_id", "=", subjectId)
      .where("organization_id", "=", organizationId),
);

/** Stored kinds that are found as work of another kind. */
const OTHER_KINDS: Readonly<Record<number, readonly [number, number?]>> = {
  [WorkKind.ENVIRONMENT]: [AGENT_WITH_ENVIRONMENT, API_AGENT_WITH_ENVIRONMENT],
  [WorkKind.AGENT]: [AGENT_PARKED],
};

/**
 * Returns the open work of one kind on a subject. For an environment this includes work that an agent execution waits
 * for, and for an agent execution the work of one that has released its slot.
 */
export async function findWork(
  db: Reader,
  { organizationId }: Scope,
  kind: WorkKind,
  subjectId: string,
): Promise<StoredWork | undefined> {
  const [otherKind, thirdKind = otherKind] = OTHER_KINDS[kind] ?? [kind];
  const [row] = await selectWork(db, { organizationId, kind, otherKind, thirdKind, subjectId });
  return row;
}

/**
 * Ends work that is no longer wanted. Leased work is stopped: the runner learns of it at its next call, which its stream
 * of questions asks for, and finishes.
 * The work stays in the queue until then, or until the lease expires, even when its subject has ended meanwhile: this
 * lets the runner of a blocked account learn the reason.
 * @returns "removed" when no runner had it, "none" when there was none
 */
export async function stopWork(
  tx: WriteTransaction,
  scope: Scope,
  kind: WorkKind,
  subjectId: string,
): Promise<"stopping" | "removed" | "none"> {
  const work = await findWork(tx.db, scope, kind, subjectId);
  if (!work) return "none";
  if (work.leased_by === null) {
    await removeWork(tx, work.id);
    return "removed";
  }
  await setStop(tx.db, { id: work.id });
  tx.touch(subjectId);
  tx.touch(stopsFor(work.leased_by));
  return "stopping";
}

const setStop = prepared<{ id: string }, unknown>((db, { id }) =>
  db.updateTable("work").set({ stop: STOP, idle_since: null }).where("id", "=", id),
);

const setStopOfLeased = prepared<Subject, { leased_by: string }>((db, { organizationId, kind, subjectId }) =>
  db
    .updateTable("work")
    .set({ stop: STOP })
    .where("kind", "=", kind)
    .where("subject_id", "=", subjectId)
    .where("organization_id", "=", organizationId)
    .where("leased_by", "is not", null)
    .returning("leased_by")
    .$castTo<{ leased_by: string }>(),
);

/** Asks the holder of work, if any, to stop; work without a holder stays in the queue. */
export async function stopHolder(
  tx: WriteTransaction,
  { organizationId }: Scope,
  kind: WorkKind,
  subjectId: string,
): Promise<void> {
  const stopped = await setStopOfLeased(tx.db, { organizationId, kind, subjectId });
  tx.touch(subjectId);
  for (const { leased_by: runnerId } of stopped) tx.touch(stopsFor(runnerId));
}

const deleteRow = prepared<{ id: string }, unknown>((db, { id }) =>
  db.deleteFrom("work").where("id", "=", id),
);

/** Removes work from the queue permanently, leased or not; its lease is lost with it. */
export async function removeWork(tx: WriteTransaction, id: Handle<"work">): Promise<void> {
  await deleteRow(tx.db, { id });
}

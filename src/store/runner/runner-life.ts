import { type Runner, RunnerSchema } from "#gen/service/v1/runner_pb.js";
import { isLocalKind } from "../../domain/runner/runner.ts";
import type { RunnerInstance } from "../../domain/runner/runner-heartbeat.ts";
import { sharedFromBody, toBody } from "../json.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import type { RunnerTable } from "./runner-schema.ts";

/** A runner with the values that not everybody sees. */
export interface StoredRunner {
  readonly runner: Runner;
  /** True when it reported to work on the server's or a member's own machine. */
  readonly local: boolean;
  /**
   * Time of its last sign of life, in milliseconds since 1970 UTC; null while it is not connected.
   */
  readonly seenAt: number | null;
}

/** The number of agent executions that a runner holds at most; null while it has not said. */
export interface RunnerSlots {
  readonly agentSlots: number | null;
}

/** A runner with its instance and slots. */
export type ConnectedRunner = StoredRunner & RunnerInstance & RunnerSlots;

const selectStoredRunner = prepared<
  { id: string; organizationId: string },
  Pick<RunnerTable, "body" | "local" | "seen_at" | "instance_id" | "instance_seen_at" | "agent_slots">
>((db, { id, organizationId }) =>
  db
    .selectFrom("runner")
    .select(["body", "local", "seen_at", "instance_id", "instance_seen_at", "agent_slots"])
    .where("id", "=", id)
    .where("organization_id", "=", organizationId),
);

/** A runner is read with each of its calls, and seldom changes. */
const runnerOfBody = sharedFromBody(RunnerSchema);

export async function findStoredRunner(
  db: Reader,
  scope: Scope,
  id: string,
): Promise<ConnectedRunner | undefined> {
  const [row] = await selectStoredRunner(db, { id, organizationId: scope.organizationId });
  return (
    row && {
      runner: runnerOfBody(row.body),
      local: row.local === 1,
      seenAt: row.seen_at,
      instanceId: row.instance_id,
      instanceSeenAt: row.instance_seen_at,
      agentSlots: row.agent_slots,
    }
  );
}

const setInstance = prepared<
  { id: string; organizationId: string; instanceId: string; now: number },
  unknown
>((db, { id, organizationId, instanceId, now }) =>
  db
    .updateTable("runner")
    .set({ instance_id: instanceId, instance_seen_at: now })
    .where("id", "=", id)
    .where("organization_id", "=", organizationId),
);

/** Makes an instance the one that began last. */
export async function beginRunnerInstance(
  tx: WriteTransaction,
  { organizationId }: Scope,
  runnerId: string,
  instanceId: string,
): Promise<void> {
  await setInstance(tx.db, { id: runnerId, organizationId, instanceId, now: tx.now });
}

/** Returns whether a runner is on the server's or a member's own machine, by its kind or by its own report. */
export function isLocal({ runner, local }: StoredRunner): boolean {
  return local || isLocalKind(runner.kind);
}

/** Does the same as {@link isLocal} for the id of a runner; false for none. */
export async function isLocalRunner(db: Reader, scope: Scope, runnerId: string): Promise<boolean> {
  const known = runnerId === "" ? undefined : await findStoredRunner(db, scope, runnerId);
  return known !== undefined && isLocal(known);
}

/**
 * Changes the description of a runner, and whether it is connected; `before` is the runner until
 * now.
 */
export async function updateRunner(
  tx: WriteTransaction,
  scope: Scope,
  before: Runner,
  { runner, local, seenAt }: StoredRunner,
): Promise<void> {
  const body = toBody(RunnerSchema, runner);
  await builderOf(tx.db)
    .updateTable("runner")
    .set({ body, local: local ? 1 : 0, seen_at: seenAt })
    .where("id", "=", runner.runnerId)
    .where("organization_id", "=", scope.organizationId)
    .execute();
  tx.record({
    organizationId: scope.organizationId,
    type: "runner",
    id: runner.runnerId,
    kind: "updated",
    before: toBody(RunnerSchema, before),
    after: body,
  });
}

/**
 * Returns up to `limit` connected runners without a sign of life since `cutoff`. For the system, so
 * without a scope.
 * @param organizationId of the runners; default any
 */
export async function findSilentRunners(
  db: Reader,
  cutoff: number,
  limit: number,
  organizationId?: string,
): Promise<(Scope & { readonly runnerId: string })[]> {
  return builderOf(db)
    .selectFrom("runner")
    .select(["organization_id as organizationId", "id as runnerId"])
    .where("seen_at", "is not", null)
    .where("seen_at", "<=", cutoff)
    .$if(organizationId !== undefined, (runners) =>
      runners.where("organization_id", "=", organizationId as string),
    )
    .orderBy("seen_at")
    .limit(limit)
    .execute();
}

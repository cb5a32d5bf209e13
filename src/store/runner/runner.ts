import { RunnerKind } from "#gen/service/v1/runner_configuration_pb.js";
import { type Runner, RunnerSchema } from "#gen/service/v1/runner_pb.js";
import { isAvailable } from "../../domain/runner/runner-heartbeat.ts";
import { fromBody, toBody } from "../json.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import type { RunnerTable } from "./runner-schema.ts";

const selectLocalRunner = prepared<{ organizationId: string; kind: number }, { id: string }>(
  (db, { organizationId, kind }) =>
    db
      .selectFrom("runner")
      .select("id")
      .where("organization_id", "=", organizationId)
      .where("kind", "=", kind),
);

/**
 * Returns the id of the runner that represents its users' local runners; every organization has
 * one.
 */
export async function findLocalRunnerId(db: Reader, scope: Scope): Promise<string> {
  const [row] = await selectLocalRunner(db, {
    organizationId: scope.organizationId,
    kind: RunnerKind.LOCAL_CONFIGURATION,
  });
  if (!row) throw new Error(`the organization ${scope.organizationId} has no local runner`);
  return row.id;
}

const selectRunner = prepared<{ id: string; organizationId: string }, { body: string }>(
  (db, { id, organizationId }) =>
    db.selectFrom("runner").select("body").where("id", "=", id).where("organization_id", "=", organizationId),
);

export async function findRunner(db: Reader, scope: Scope, id: string): Promise<Runner | undefined> {
  const [row] = await selectRunner(db, { id, organizationId: scope.organizationId });
  return row && fromBody(RunnerSchema, row.body);
}

const selectForApiAgents = prepared<{ organizationId: string }, { id: string }>((db, { organizationId }) =>
  db
    .selectFrom("runner")
    .select("id")
    .where("organization_id", "=", organizationId)
    .where("api_agents", "=", 1)
    .limit(1),
);

/** Returns whether a runner of the organization has reported that it accepts agents that are defined by the API. */
export async function hasRunnerForApiAgents(db: Reader, scope: Scope): Promise<boolean> {
  return (await selectForApiAgents(db, { organizationId: scope.organizationId })).length > 0;
}

/** Returns the columns that duplicate values of a runner's body. */
export function stateOf(runner: Runner): Pick<RunnerTable, "available" | "api_agents"> {
  return { available: isAvailable(runner) ? 1 : 0, api_agents: runner.status?.apiAgents ? 1 : 0 };
}

export async function insertRunner(tx: WriteTransaction, scope: Scope, runner: Runner): Promise<void> {
  const body = toBody(RunnerSchema, runner);
  await builderOf(tx.db)
    .insertInto("runner")
    .values({
      id: runner.runnerId,
      organization_id: scope.organizationId,
      creator_id: runner.creator?.id ?? "",
      kind: runner.kind,
      body,
      local: 0,
      seen_at: null,
      instance_id: null,
      instance_seen_at: null,
      agent_slots: null,
      requests_stream: null,
      requests_until: null,
      kept_policies: null,
      ...stateOf(runner),
    })
    .execute();
  tx.record({
    organizationId: scope.organizationId,
    type: "runner",
    id: runner.runnerId,
    kind: "created",
    after: body,
  });
}

/** Removes the row permanently; no environment, class or project may refer to it. */
export async function removeRunner(tx: WriteTransaction, scope: Scope, runner: Runner): Promise<void> {
  await builderOf(tx.db)
    .deleteFrom("runner")
    .where("id", "=", runner.runnerId)
    .where("organization_id", "=", scope.organizationId)
    .execute();
  tx.record({
    organizationId: scope.organizationId,
    type: "runner",
    id: runner.runnerId,
    kind: "deleted",
    before: toBody(RunnerSchema, runner),
  });
}

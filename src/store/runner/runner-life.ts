import { type Runner, RunnerSchema } from "#gen/service/v1/runner_pb.js";
import { offeredTo, type PolicySet } from "../../domain/runner/kept-policies.ts";
import { isLocalKind } from "../../domain/runner/runner.ts";
import type { RunnerInstance } from "../../domain/runner/runner-heartbeat.ts";
import type { RunnerQuestions } from "../../domain/runner/runner-questions.ts";
import { hasAllOf } from "../expressions.ts";
import { sharedFromBody, toBody } from "../json.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { BookkeepingUpdate, Reader, Scope, WriteTransaction } from "../store.ts";
import { stateOf } from "./runner.ts";
import type { RunnerTable } from "./runner-schema.ts";

/** A runner with the values that only some callers see. */
export interface StoredRunner {
  readonly runner: Runner;
  /** True when it reported that it works on the server's or a member's own machine. */
  readonly local: boolean;
  /** Time of its last heartbeat, in milliseconds since 1970 UTC; null while it is not connected. */
  readonly seenAt: number | null;
}

/** Maximum number of agent executions that a runner holds; null until it reports one. */
export interface RunnerSlots {
  readonly agentSlots: number | null;
}

/** The set of the policies that a runner reports to support; null until it reports them. */
export interface RunnerPolicies {
  readonly keptPolicies: number | null;
}

/** A runner with its instance, slots, stream of questions and supported policies. */
export type ConnectedRunner = StoredRunner & RunnerInstance & RunnerSlots & RunnerQuestions & RunnerPolicies;

const selectStoredRunner = prepared<
  { id: string; organizationId: string },
  Omit<RunnerTable, "id" | "organization_id" | "creator_id" | "kind" | "available" | "api_agents">
>((db, { id, organizationId }) =>
  db
    .selectFrom("runner")
    .select([
      "body",
      "local",
      "seen_at",
      "instance_id",
      "instance_seen_at",
      "agent_slots",
      "requests_stream",
      "requests_until",
      "kept_policies",
    ])
    .where("id", "=", id)
    .where("organization_id", "=", organizationId),
);

/** Cached, since a runner is read with each of its calls and seldom changes. */
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
      questionsStream: row.requests_stream,
      questionsUntil: row.requests_until,
      keptPolicies: row.kept_policies,
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

/** Makes an instance the runner's newest one. */
export async function beginRunnerInstance(
  tx: WriteTransaction,
  { organizationId }: Scope,
  runnerId: string,
  instanceId: string,
): Promise<void> {
  await setInstance(tx.db, { id: runnerId, organizationId, instanceId, now: tx.now });
}

const setKept = prepared<{ id: string; organizationId: string; kept: number | null }, unknown>(
  (db, { id, organizationId, kept }) =>
    db
      .updateTable("runner")
      .set({ kept_policies: kept })
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

/** Stores the set of the policies that a runner reports to support; null for one that reports none. */
export async function setKeptPolicies(
  tx: WriteTransaction,
  { organizationId }: Scope,
  runnerId: string,
  kept: number | null,
): Promise<void> {
  await setKept(tx.db, { id: runnerId, organizationId, kept });
}

const setStream = prepared<{ id: string; organizationId: string; streamId: string; until: number }, unknown>(
  (db, { id, organizationId, streamId, until }) =>
    db
      .updateTable("runner")
      .set({ requests_stream: streamId, requests_until: until })
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

/** Sets a new stream of questions for a runner. @param until time until which it counts as open @returns its id */
export async function openQuestionStream(
  tx: WriteTransaction,
  { organizationId }: Scope,
  runnerId: string,
  until: number,
): Promise<string> {
  const streamId = tx.newId();
  await setStream(tx.db, { id: runnerId, organizationId, streamId, until });
  return streamId;
}

const selectStream = prepared<{ id: string; organizationId: string }, Pick<RunnerTable, "requests_stream">>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("runner")
      .select("requests_stream")
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

/**
 * Returns the bookkeeping update that sets until when a stream of questions counts as open; it does nothing once a
 * newer one has opened.
 */
export async function streamUpdate(
  db: Reader,
  { organizationId }: Scope,
  { id, streamId, until }: { readonly id: string; readonly streamId: string; readonly until: number },
): Promise<BookkeepingUpdate[]> {
  const [row] = await selectStream(db, { id, organizationId });
  if (row?.requests_stream !== streamId) return [];
  return [{ table: "runner", id, values: { requests_until: until } }];
}

/** The conditions of a search for a runner. */
export interface WantedRunner {
  /** The set of the policies that it must support. */
  readonly needs: PolicySet;
  /** Id of the only acceptable runner; null for any. */
  readonly runnerId: string | null;
  /** Values of `local`. */
  readonly local: readonly number[];
  /** True if it must accept agents that are defined by the API. */
  readonly apiAgents: boolean;
}

/** Returns whether a matching runner is connected and should get work. */
export async function isConnected(
  db: Reader,
  { organizationId }: Scope,
  { needs, runnerId, local, apiAgents }: WantedRunner,
): Promise<boolean> {
  const found = await builderOf(db)
    .selectFrom("runner")
    .select("id")
    .where("organization_id", "=", organizationId)
    .where("seen_at", "is not", null)
    .where("available", "=", 1)
    .where("local", "in", local)
    .where(hasAllOf("runner.kept_policies", needs, offeredTo(null)))
    .$if(apiAgents, (runners) => runners.where("api_agents", "=", 1))
    .$if(runnerId !== null, (runners) => runners.where("id", "=", runnerId))
    .limit(1)
    .execute();
  return found.length > 0;
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

/** Changes the description of a runner, and whether it is connected; `before` is the current runner. */
export async function updateRunner(
  tx: WriteTransaction,
  scope: Scope,
  before: Runner,
  { runner, local, seenAt }: StoredRunner,
): Promise<void> {
  const body = toBody(RunnerSchema, runner);
  await builderOf(tx.db)
    .updateTable("runner")
    .set({ body, local: local ? 1 : 0, seen_at: seenAt, ...stateOf(runner) })
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
 * Returns up to `limit` connected runners without a heartbeat since `cutoff`. For the system, so without a scope.
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

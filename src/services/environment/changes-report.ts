import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type ReportEnvironmentChangesRequest,
  ReportEnvironmentChangesResponseSchema,
} from "#gen/runner/v1/environment_work_service_pb.js";
import { DiffBase, EnvironmentChangesSchema } from "#gen/service/v1/environment_changes_pb.js";
import { requireDistinctBases, totalCounts } from "../../domain/environment/environment-changes.ts";
import { notFound } from "../../domain/error.ts";
import { findEnvironment } from "../../store/environment/environment.ts";
import {
  findChanges,
  type NewDiff,
  newDiff,
  type StoredChanges,
  storeChanges,
  touchChanges,
} from "../../store/environment/environment-changes.ts";
import { toBody } from "../../store/json.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { recordHeartbeat } from "../runner/heartbeat.ts";
import type { EnvironmentRuns } from "./environment-runs.ts";

/**
 * Stores a runner's report on the changes in one of its environments, and wakes the streams that watch an agent
 * execution in it. A report that equals the stored one updates only its time.
 *
 * @throws DomainError NOT_FOUND; VALUE_UNUSABLE for two diffs against the same base
 */
export async function reportEnvironmentChanges(
  deps: Pick<ServiceDependencies, "store" | "now"> & { readonly runs: EnvironmentRuns },
  req: ReportEnvironmentChangesRequest,
  ctx: HandlerContext,
) {
  requireDistinctBases(req.diffs);
  await recordHeartbeat(deps, ctx);
  const diffs = req.diffs.map(({ base, files, filesLeftOut }) => newDiff(base, files, filesLeftOut));
  return writeAsCaller(deps.store, ctx, async (tx, caller) => {
    const { environmentId, repositories } = req;
    const environment = await findEnvironment(tx.db, caller, environmentId);
    const creator = environment?.metadata?.creator;
    if (!creator || environment.metadata?.runnerId !== caller.subject.id) throw notFound("environment");
    const before = await findChanges(tx.db, caller, environmentId);
    const changes = create(EnvironmentChangesSchema, {
      environmentId,
      repositories,
      refreshedAt: timestampFromMs(tx.now),
      digest: diffs.find(({ base }) => base === DiffBase.ENVIRONMENT)?.digest ?? "",
      counts: totalCounts(repositories),
    });
    const actionId = environment.spec?.workflowActionId || null;
    await store(tx, caller, { changes, creator, actionId }, diffs, before);
    for (const id of await deps.runs.findOpenIds(tx.db, caller, environmentId)) tx.touch(id);
    return create(ReportEnvironmentChangesResponseSchema);
  });
}

async function store(
  tx: WriteTransaction,
  scope: Scope,
  after: Omit<StoredChanges, "diffs" | "version">,
  diffs: readonly NewDiff[],
  before: StoredChanges | undefined,
): Promise<void> {
  if (before && isSame(before, after, diffs)) return touchChanges(tx, scope, after.changes.environmentId);
  await storeChanges(tx, scope, after, diffs, before);
}

function isSame(
  before: StoredChanges,
  { changes }: Pick<StoredChanges, "changes">,
  diffs: readonly NewDiff[],
): boolean {
  const textOf = ({ repositories }: typeof changes) =>
    toBody(EnvironmentChangesSchema, create(EnvironmentChangesSchema, { repositories }));
  if (textOf(before.changes) !== textOf(changes) || before.diffs.length !== diffs.length) return false;
  return diffs.every(({ base, digest }) =>
    before.diffs.some((known) => known.base === base && known.digest === digest),
  );
}

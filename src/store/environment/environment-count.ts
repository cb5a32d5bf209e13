import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import type { EnvironmentCounts } from "../../domain/environment/environment-limit.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope } from "../store.ts";

/** Phases in which a machine is in use, whatever the desired phase is. */
const IN_USE = [EnvironmentPhase.STARTING, EnvironmentPhase.RUNNING, EnvironmentPhase.UPDATING];

/** Returns the number of environments of an organization that use a machine, or are about to. */
export async function countRunningEnvironments(db: Reader, scope: Scope): Promise<number> {
  const { count } = await builderOf(db)
    .selectFrom("environment")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("organization_id", "=", scope.organizationId)
    .where((eb) => eb.or([eb("phase", "in", IN_USE), eb("desired_phase", "=", EnvironmentPhase.RUNNING)]))
    .executeTakeFirstOrThrow();
  return count;
}

/**
 * Returns the number of environments of a creator, excluding one. Those whose deletion is requested count only while
 * they run.
 */
export async function countEnvironmentsOfCreator(
  db: Reader,
  scope: Scope,
  creatorId: string,
  exceptId: string,
): Promise<EnvironmentCounts> {
  const rows = await builderOf(db)
    .selectFrom("environment")
    .select(["phase", "desired_phase", (eb) => eb.fn.countAll<number>().as("count")])
    .where("organization_id", "=", scope.organizationId)
    .where("creator_id", "=", creatorId)
    .where("id", "!=", exceptId)
    .groupBy(["phase", "desired_phase"])
    .execute();
  const sum = (counted: (row: (typeof rows)[number]) => boolean) =>
    rows.filter(counted).reduce((total, { count }) => total + count, 0);
  return {
    all: sum(({ desired_phase }) => desired_phase !== EnvironmentPhase.DELETED),
    running: sum(
      ({ phase, desired_phase }) => desired_phase === EnvironmentPhase.RUNNING || IN_USE.includes(phase),
    ),
  };
}

import { type Environment, EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { type EnvironmentTemplate, newEnvironment } from "../../domain/environment/environment.ts";
import {
  limitsEnvironments,
  requireEnvironmentQuota,
  requireRunningQuota,
} from "../../domain/environment/environment-limit.ts";
import {
  applyPoliciesToSpec,
  requireLifetimeAllowsStart,
  withLifetime,
} from "../../domain/environment/environment-policy.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import type { Policies } from "../../domain/policy/policies.ts";
import { countEnvironmentsOfCreator } from "../../store/environment/environment-count.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import { isLocalRunner } from "../../store/runner/runner-life.ts";
import type { Reader, Scope, WriteTransaction } from "../../store/store.ts";

/**
 * Returns a new environment that satisfies the organization's policies and has the fields that they set. Environments
 * are counted in the same transaction, so that concurrent requests cannot exceed a quota.
 *
 * @param known the policies, if they were already read in this transaction
 * @throws PolicyDenied; what newEnvironment throws
 */
export async function newEnvironmentUnderPolicies(
  tx: WriteTransaction,
  caller: Caller,
  template: EnvironmentTemplate,
  known?: Policies,
): Promise<Environment> {
  const policies = known ?? (await findPolicies(tx.db, caller));
  const spec = applyPoliciesToSpec(policies, template.spec, {
    role: caller.role,
    fromProject: template.projectId !== "",
    // Read only where it matters: nearly every organization allows local runners.
    local: !policies.effective.allowLocalRunners && (await isLocalRunner(tx.db, caller, template.runnerId)),
  });
  const origin = {
    id: tx.newId(),
    organizationId: caller.organizationId,
    creator: caller.subject,
    now: tx.now,
  };
  const environment = withLifetime(policies, newEnvironment({ ...template, spec }, origin));
  await requireQuotas(tx.db, caller, policies, environment, true);
  return environment;
}

/**
 * Requires that the organization's policies allow the start of an environment.
 *
 * @throws PolicyDenied
 */
export async function requireStartAllowed(
  tx: WriteTransaction,
  scope: Scope,
  before: Environment,
  after: Environment,
): Promise<void> {
  const policies = await findPolicies(tx.db, scope);
  requireLifetimeAllowsStart(policies, before, tx.now);
  // An environment whose desired phase is running is already counted.
  if (before.spec?.desiredPhase !== EnvironmentPhase.RUNNING) {
    await requireQuotas(tx.db, scope, policies, after, false);
  }
}

/** Requires the quotas of the environment's creator, even when another user starts it. */
async function requireQuotas(
  db: Reader,
  scope: Scope,
  policies: Policies,
  { id, metadata, spec }: Environment,
  isNew: boolean,
): Promise<void> {
  if (!limitsEnvironments(policies)) return;
  const counts = await countEnvironmentsOfCreator(db, scope, metadata?.creator?.id ?? "", id);
  if (isNew) requireEnvironmentQuota(policies, counts);
  if (spec?.desiredPhase === EnvironmentPhase.RUNNING) requireRunningQuota(policies, counts);
}

import type { Policies } from "../policy/policies.ts";
import { policyDenied } from "../policy/policy-decision.ts";

/** Numbers of environments that a user has, without the one that is being created or started. */
export interface EnvironmentCounts {
  /** Number of running and stopped environments, without those whose deletion is wanted. */
  readonly all: number;
  /** Number of environments that run or have the desired phase running. */
  readonly running: number;
}

/**
 * Returns whether any limit on the number of environments is set, so that they have to be counted.
 */
export function limitsEnvironments({ effective }: Policies): boolean {
  return Boolean(effective.maximumEnvironmentsPerUser || effective.maximumRunningEnvironmentsPerUser);
}

/**
 * Requires that the user may have one more environment.
 * @throws PolicyDenied at the maximum
 */
export function requireEnvironmentQuota(policies: Policies, { all }: EnvironmentCounts): void {
  const limit = policies.effective.maximumEnvironmentsPerUser ?? 0n;
  if (limit === 0n || BigInt(all) < limit) return;
  const allowed = `at most ${limit} environments of one user`;
  throw policyDenied(policies, {
    fieldPath: "maximumEnvironmentsPerUser",
    requested: String(all + 1),
    allowed,
  });
}

/**
 * Requires that the user may have one more running environment.
 * @throws PolicyDenied at the maximum
 */
export function requireRunningQuota(policies: Policies, { running }: EnvironmentCounts): void {
  const limit = policies.effective.maximumRunningEnvironmentsPerUser ?? 0n;
  if (limit === 0n || BigInt(running) < limit) return;
  const allowed = `at most ${limit} running environments of one user`;
  const requested = String(running + 1);
  throw policyDenied(policies, { fieldPath: "maximumRunningEnvironmentsPerUser", requested, allowed });
}

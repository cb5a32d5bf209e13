import type { Policies } from "../policy/policies.ts";
import { denied } from "../policy/policy-decision.ts";

/** Numbers of environments that a user has, without the one that is being created or started. */
export interface EnvironmentCounts {
  /** Number of running and stopped environments, without those whose deletion is wanted. */
  readonly all: number;
  /** Number of environments that run or are wanted running. */
  readonly running: number;
}

/**
 * Returns whether any limit on the number of environments is set, so that they have to be counted.
 */
export function limitsEnvironments({ inForce }: Policies): boolean {
  return Boolean(inForce.maximumEnvironmentsPerUser || inForce.maximumRunningEnvironmentsPerUser);
}

/** Requires that the user may have one more environment. @throws PolicyDenied at the maximum */
export function requireEnvironmentQuota(policies: Policies, { all }: EnvironmentCounts): void {
  const most = policies.inForce.maximumEnvironmentsPerUser ?? 0n;
  if (most === 0n || BigInt(all) < most) return;
  const allowed = `at most ${most} environments of one user`;
  throw denied(policies, { fieldPath: "maximumEnvironmentsPerUser", asked: String(all + 1), allowed });
}

/**
 * Requires that the user may have one more running environment. @throws PolicyDenied at the maximum
 */
export function requireRunningQuota(policies: Policies, { running }: EnvironmentCounts): void {
  const most = policies.inForce.maximumRunningEnvironmentsPerUser ?? 0n;
  if (most === 0n || BigInt(running) < most) return;
  const allowed = `at most ${most} running environments of one user`;
  const asked = String(running + 1);
  throw denied(policies, { fieldPath: "maximumRunningEnvironmentsPerUser", asked, allowed });
}

import type { Policies } from "../policy/policies.ts";
import { denied } from "../policy/policy-decision.ts";

/** How many environments a user has, without the one that is asked for. */
export interface EnvironmentCounts {
  /** Running and stopped ones, without those whose deletion is wanted. */
  readonly all: number;
  /** Those that run or are wanted running. */
  readonly running: number;
}

/** Whether any limit on the number of environments is set, so that they need be counted. */
export function limitsEnvironments({ inForce }: Policies): boolean {
  return Boolean(inForce.maximumEnvironmentsPerUser || inForce.maximumRunningEnvironmentsPerUser);
}

/** @throws PolicyDenied when the user has as many environments as it may */
export function requireEnvironmentQuota(policies: Policies, { all }: EnvironmentCounts): void {
  const most = policies.inForce.maximumEnvironmentsPerUser ?? 0n;
  if (most === 0n || BigInt(all) < most) return;
  const allowed = `at most ${most} environments of one user`;
  throw denied(policies, { fieldPath: "maximumEnvironmentsPerUser", asked: String(all + 1), allowed });
}

/** @throws PolicyDenied when as many environments of the user run as may */
export function requireRunningQuota(policies: Policies, { running }: EnvironmentCounts): void {
  const most = policies.inForce.maximumRunningEnvironmentsPerUser ?? 0n;
  if (most === 0n || BigInt(running) < most) return;
  const allowed = `at most ${most} running environments of one user`;
  const asked = String(running + 1);
  throw denied(policies, { fieldPath: "maximumRunningEnvironmentsPerUser", asked, allowed });
}

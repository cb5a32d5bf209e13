import type { EnvironmentConnection } from "#gen/service/v1/environment_connection_pb.js";
import { requireTimestampInRange } from "../timestamp-range.ts";

/** Maximum number of refused connections, and of allowed ones, kept per environment (contract, ListEnvironmentConnections). */
export const MAX_KEPT_CONNECTIONS = 1_000;

/** Numbers of connections of an environment. */
export interface ConnectionCounts {
  readonly refused: number;
  readonly allowed: number;
}

/** Requires that all times of connections are within the range of timestamps. @throws DomainError VALUE_UNUSABLE */
export function requireTimes(connections: readonly EnvironmentConnection[]): void {
  for (const [index, { endedAt }] of connections.entries())
    requireTimestampInRange(`connections[${index}].endedAt`, endedAt);
}

export function isRefused({ refusal }: Pick<EnvironmentConnection, "refusal">): boolean {
  return refusal !== 0;
}

/** Returns the new connections that can still be kept within the maximum, and the resulting counts. */
export function connectionsToKeep(
  connections: readonly EnvironmentConnection[],
  kept: ConnectionCounts,
): { readonly connections: readonly EnvironmentConnection[]; readonly counts: ConnectionCounts } {
  const counts = { ...kept };
  const fitting = connections.filter((connection) => {
    const kind = isRefused(connection) ? "refused" : "allowed";
    if (counts[kind] >= MAX_KEPT_CONNECTIONS) return false;
    counts[kind]++;
    return true;
  });
  return { connections: fitting, counts };
}

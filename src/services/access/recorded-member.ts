import { Principal } from "#gen/service/v1/identity_pb.js";
import type { Caller } from "../../domain/identity/caller.ts";
import { type Actor, SYSTEM, type WriteTransaction } from "../../store/store.ts";

/**
 * Returns a write whose records in other organizations than the caller's name as their author who the caller is there,
 * and the system where that is nobody: each trail names its organization's own members alone.
 *
 * @param userIdIn finds the id of the caller's account as a member of an organization
 */
export function recordedAsMember(
  tx: WriteTransaction,
  caller: Caller,
  userIdIn: (organizationId: string) => string | undefined,
): WriteTransaction {
  const actorIn = (organizationId: string): Actor => {
    const id = userIdIn(organizationId);
    return id === undefined ? SYSTEM : { id, principal: Principal.USER };
  };
  return {
    ...tx,
    record(change) {
      const { organizationId } = change;
      const isOther = organizationId !== null && organizationId !== caller.organizationId;
      tx.record(isOther ? { actor: actorIn(organizationId), ...change } : change);
    },
  };
}

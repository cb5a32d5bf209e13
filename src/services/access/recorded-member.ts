import { Principal } from "#gen/service/v1/identity_pb.js";
import type { Caller } from "../../domain/identity/caller.ts";
import { type Actor, SYSTEM, type WriteTransaction } from "../../store/store.ts";

/**
 * Returns a write for changes in other organizations. It records them under the caller's user id in that
 * organization, or under the system if the caller has none there: each audit trail names only members of its own
 * organization.
 *
 * @param userIdIn returns the user id of the caller's account in an organization
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

import { tooManyStreams } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";

/** The limits of concurrently open streams in this process; each at least 1. */
export interface StreamLimits {
  readonly perToken: number;
  readonly perOrganization: number;
  readonly perServer: number;
}

/** The slots of the open streams of service.v1. */
export interface StreamSlots {
  /**
   * Takes a slot for a stream.
   *
   * @returns a function that releases the slot; repeated calls have no effect
   * @throws DomainError TOO_MANY_STREAMS
   */
  take(caller: Pick<Caller, "tokenId" | "organizationId">): () => void;
  /** Returns the number of slots in use. */
  taken(): number;
}

/** Creates the slots, all free. */
export function createStreamSlots(limits: StreamLimits): StreamSlots {
  const ofToken = new Map<string, number>();
  const ofOrganization = new Map<string, number>();
  let all = 0;
  return {
    taken: () => all,
    take({ tokenId, organizationId }) {
      // The narrowest limit comes first: it is the one that the caller can act on.
      if (countOf(ofToken, tokenId) >= limits.perToken) throw tooManyStreams("token", limits.perToken);
      if (countOf(ofOrganization, organizationId) >= limits.perOrganization) {
        throw tooManyStreams("organization", limits.perOrganization);
      }
      if (all >= limits.perServer) throw tooManyStreams("server", limits.perServer);
      add(ofToken, tokenId, 1);
      add(ofOrganization, organizationId, 1);
      all += 1;
      let isTaken = true;
      return () => {
        if (!isTaken) return;
        isTaken = false;
        add(ofToken, tokenId, -1);
        add(ofOrganization, organizationId, -1);
        all -= 1;
      };
    },
  };
}

function countOf(counts: ReadonlyMap<string, number>, key: string): number {
  return counts.get(key) ?? 0;
}

function add(counts: Map<string, number>, key: string, change: 1 | -1): void {
  const count = countOf(counts, key) + change;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}

/** The open stream of a lease. */
export interface LeaseStream {
  /** Aborts when a newer stream of the lease has opened. */
  readonly replaced: AbortSignal;
  /** Ends the registration; repeated calls have no effect. */
  close(): void;
}

/** Registers the stream of a lease and ends the previous one. */
export type LeaseStreams = (leaseId: string) => LeaseStream;

/** Creates the registry of lease streams. A lease has one stream, which bounds the number of runners' streams. */
export function createLeaseStreams(): LeaseStreams {
  const open = new Map<string, AbortController>();
  return (leaseId) => {
    open.get(leaseId)?.abort();
    const controller = new AbortController();
    open.set(leaseId, controller);
    return {
      replaced: controller.signal,
      close() {
        if (open.get(leaseId) === controller) open.delete(leaseId);
      },
    };
  };
}

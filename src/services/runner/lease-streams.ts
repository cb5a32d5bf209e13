/** The open stream of a lease. */
export interface LeaseStream {
  /** Aborts when a newer stream of the lease has opened. */
  readonly replaced: AbortSignal;
  /** Ends the registration; repeated calls have no effect. */
  close(): void;
}

/** A function that registers the stream of a lease and ends the one before it. */
export type LeaseStreams = (leaseId: string) => LeaseStream;

/** Creates the registry of the streams of leases. Each lease has one stream, so that the leases bound the streams of runners. */
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

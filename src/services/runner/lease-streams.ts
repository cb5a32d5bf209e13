/** The place of a stream among those of the leases. */
export interface LeaseStream {
  /** Aborts when a newer stream of the lease has taken the place. */
  readonly replaced: AbortSignal;
  /** Gives the place up; harmless when repeated. */
  close(): void;
}

/** Opens the one stream of a lease, and has the one before end. */
export type LeaseStreams = (leaseId: string) => LeaseStream;

/** Bounds the streams of runners by the leases that they hold: each has one, and nothing else counts. */
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

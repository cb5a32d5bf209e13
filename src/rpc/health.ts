import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import { type Health, HealthCheckResponse_ServingStatus as Status } from "#gen/grpc/health/v1/health_pb.js";

/** The readiness of the server, with a notification of its end. */
export interface Readiness {
  /** Returns the reason why the server is not ready, in one sentence; undefined while it is. */
  unreadiness(): string | undefined;
  /** Aborted when the server begins to shut down. */
  readonly draining: AbortSignal;
}

/**
 * Creates the readiness of a server that is ready while its database is, until it is drained.
 *
 * @param storageProblem returns why the database cannot be used; undefined while it can
 */
export function createReadiness(
  storageProblem: () => string | undefined,
): Readiness & { readonly drain: () => void } {
  const draining = new AbortController();
  return {
    unreadiness: () => (draining.signal.aborted ? "the server is shutting down" : storageProblem()),
    draining: draining.signal,
    drain: () => draining.abort(),
  };
}

/**
 * Creates the health service for probes of gRPC servers; every service of the
 * server is as ready as the server.
 */
export function healthService(
  readiness: Readiness,
  isService: (name: string) => boolean,
): ServiceImpl<typeof Health> {
  const knows = (service: string) => service === "" || isService(service);
  const present = () => ({
    status: readiness.unreadiness() === undefined ? Status.SERVING : Status.NOT_SERVING,
  });
  return {
    check({ service }) {
      if (!knows(service)) throw new ConnectError("the server has no such service", Code.NotFound);
      return present();
    },
    async *watch({ service }, ctx) {
      yield knows(service) ? present() : { status: Status.SERVICE_UNKNOWN };
      await firstAbort(ctx.signal, readiness.draining);
      // The watcher's own deadline, or its leaving, says nothing about the server.
      if (!readiness.draining.aborted) ctx.signal.throwIfAborted();
      if (knows(service)) yield { status: Status.NOT_SERVING };
      throw new ConnectError("the server is shutting down", Code.Unavailable);
    },
  };
}

/** Resolves when either signal is aborted. */
function firstAbort(one: AbortSignal, other: AbortSignal): Promise<void> {
  const either = AbortSignal.any([one, other]);
  if (either.aborted) return Promise.resolve();
  return new Promise((resolve) => either.addEventListener("abort", () => resolve(), { once: true }));
}

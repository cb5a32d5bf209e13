import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import { type Health, HealthCheckResponse_ServingStatus as Status } from "#gen/grpc/health/v1/health_pb.js";

/** A check that can keep a server from being ready. */
export type Check = (typeof CHECKS)[number];
export const CHECKS = ["draining", "database", "disk", "keys"] as const;

/** Why a server is not ready. */
export interface Problem {
  readonly check: Check;
  /** One sentence for the operator; everyone who can reach the server may read it. */
  readonly reason: string;
}

/** The readiness of the server, with a signal of its shutdown. */
export interface Readiness {
  /** Returns why the server is not ready, in the order of CHECKS; empty while it is. */
  problems(): readonly Problem[];
  /** Aborted when the server begins to shut down. */
  readonly draining: AbortSignal;
}

const SHUTTING_DOWN: Problem = { check: "draining", reason: "the server is shutting down" };

/**
 * Creates the readiness of a server: it is ready while its database and machine have no problem, until it is drained.
 *
 * @param storageProblem returns why the database cannot be used; undefined while it can
 * @param machineProblems returns the problems of the disk and the keys
 */
export function createReadiness(
  storageProblem: () => string | undefined,
  machineProblems: () => readonly Problem[],
): Readiness & { readonly drain: () => void } {
  const draining = new AbortController();
  return {
    problems() {
      const storage = storageProblem();
      return [
        ...(draining.signal.aborted ? [SHUTTING_DOWN] : []),
        ...(storage === undefined ? [] : [{ check: "database", reason: storage } as const]),
        ...machineProblems(),
      ];
    },
    draining: draining.signal,
    drain: () => draining.abort(),
  };
}

/** Returns each check, and whether it passes. */
export function checksOf(readiness: Pick<Readiness, "problems">): [check: Check, isWell: boolean][] {
  const failed = new Set(readiness.problems().map(({ check }) => check));
  return CHECKS.map((check) => [check, !failed.has(check)]);
}

/**
 * Creates the gRPC health service for probes; every service has the readiness of
 * the server.
 */
export function healthService(
  readiness: Readiness,
  isService: (name: string) => boolean,
): ServiceImpl<typeof Health> {
  const knows = (service: string) => service === "" || isService(service);
  const present = () => ({
    status: readiness.problems().length === 0 ? Status.SERVING : Status.NOT_SERVING,
  });
  return {
    check({ service }) {
      if (!knows(service)) throw new ConnectError("the server has no such service", Code.NotFound);
      return present();
    },
    async *watch({ service }, ctx) {
      yield knows(service) ? present() : { status: Status.SERVICE_UNKNOWN };
      await firstAbort(ctx.signal, readiness.draining);
      // The watcher's deadline passed or it disconnected, which says nothing about the server.
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

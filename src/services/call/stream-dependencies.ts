import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { DomainError } from "../../domain/error.ts";
import type { ServiceDependencies } from "./dependencies.ts";

/** The dependencies of services with streams. */
export interface StreamDependencies extends ServiceDependencies {
  /** Aborted when the server begins to shut down. */
  readonly draining: AbortSignal;
}

/** Returns the error that ends a stream which can be resumed. */
export function shuttingDown(): DomainError {
  return new DomainError(
    ErrorReason.UNAVAILABLE,
    "the server is shutting down: resume after the last sequence number, another instance or a restart will answer",
  );
}

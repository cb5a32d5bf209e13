import type { ServiceDependencies } from "./dependencies.ts";

/** The dependencies of services with streams. */
export interface StreamDependencies extends ServiceDependencies {
  /** Aborted when the server begins to shut down. */
  readonly draining: AbortSignal;
}

import type { MachineIssuer } from "./config/machine-issuers.ts";
import type { OtlpHeaders } from "./config/otlp-headers.ts";
import type { SignInProvider } from "./config/sign-in-providers.ts";
import type { Keys } from "./keys.ts";
import type { Log } from "./log.ts";
import type { MetricSource } from "./metrics/metric.ts";
import type { Store } from "./store/store.ts";
import type { CallTraces } from "./tracing/call-traces.ts";

/** Parts that a server is built from, in addition to its settings. */
export interface ServerDependencies {
  readonly store: Store;
  readonly keys: Keys;
  readonly log: Log;
  /** The sign-in providers in the settings. */
  readonly providers: readonly SignInProvider[];
  /** The issuers in the settings whose tokens service accounts may trust. */
  readonly machineIssuers: readonly MachineIssuer[];
  /** Headers for collectors. */
  readonly otlpHeaders?: OtlpHeaders;
  /** Records the calls of a server that sends traces; absent when it sends none. */
  readonly traces?: CallTraces | undefined;
  /** Sources of metrics of the process, shown to administrators in addition to those of the server. */
  readonly figures?: readonly MetricSource[];
  /** Returns milliseconds since 1970 UTC. */
  readonly now: () => number;
}

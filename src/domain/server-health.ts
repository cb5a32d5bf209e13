/** A check of a server's readiness. */
export interface HealthCheck {
  readonly name: string;
  /** The problem, in a sentence; empty while there is none. */
  readonly reason: string;
}

/** A figure of a server or an organization. */
export interface Figure {
  /** The name of the metric as it is served, such as `chartroom_work_oldest_age`. */
  readonly name: string;
  readonly description: string;
  /** The unit in UCUM notation. */
  readonly unit: string;
  /** Labels, whose values come from fixed sets. */
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The state of a server, as administrators see it. */
export interface ServerHealth {
  readonly version: string;
  /** Milliseconds since 1970 UTC. */
  readonly startedAt: number;
  readonly checks: readonly HealthCheck[];
  /** Figures of the server and its database. */
  readonly server: readonly Figure[];
  /** Figures of the waiting and running work of an organization. */
  readonly organization: readonly Figure[];
}

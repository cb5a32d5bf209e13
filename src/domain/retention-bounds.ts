/** The bounds of a kind; 0 in a field for no bound. */
export interface Keep {
  readonly days: number;
  /** Number of the newest. */
  readonly count: number;
}

/** The kinds that age out. */
export type RetainedKind = "executions" | "agentExecutions" | "triggerEntries" | "events";

/** The bounds of each kind. */
export type Retention = Readonly<Record<RetainedKind, Keep>>;

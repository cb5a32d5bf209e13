/** The retention limits of a kind of rows; 0 in a field for no limit. */
export interface Keep {
  readonly days: number;
  /** Number of newest rows to keep. */
  readonly count: number;
}

/** The kinds of rows that retention removes. */
export type RetainedKind = "executions" | "agentExecutions" | "triggerEntries" | "events";

/** The retention limits of each kind. */
export type Retention = Readonly<Record<RetainedKind, Keep>>;

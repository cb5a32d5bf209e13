/** Time limits, in milliseconds. */
export interface AcpLimits {
  /** Time in which an agent must have opened its session; 120,000 when absent. */
  readonly startMs?: number;
  /** Time in which an agent must have ended a turn that was cancelled; 30,000 when absent. */
  readonly cancelMs?: number;
  /** Time after which an agent fails its run when it reads no answers, but asks on; 60,000 when absent. */
  readonly unreadMs?: number;
}

/** Time limits, in milliseconds. */
export interface AcpLimits {
  /** Maximum time for an agent to open its session; 120,000 when absent. */
  readonly startMs?: number;
  /** Maximum time for an agent to end a cancelled turn; 30,000 when absent. */
  readonly cancelMs?: number;
  /** Time after which the run of an agent fails that sends requests but reads no responses; 60,000 when absent. */
  readonly unreadMs?: number;
}

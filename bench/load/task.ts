/** One request of a load. */
export interface LoadRequest {
  /** Such as `ProjectService/GetProject`. */
  readonly operation: string;
  /** JSON text; what loads in a binary form makes that of it. */
  readonly body: string;
  /** Token of the caller where it is not the task's; for JSON without a pace. */
  readonly token?: string;
}

/** The instructions for a load process: a closed loop, each connection asking again once it has its answer, or a pace. */
export interface LoadTask {
  readonly form: "json" | "binary" | "grpc";
  readonly url: string;
  readonly token: string;
  readonly connections: number;
  readonly requests: readonly LoadRequest[];
  /** How long it lasts; `amount` instead of it ends once so many are answered. */
  readonly seconds: number;
  readonly amount?: number;
  /** Requests begin at this pace, whether those before are answered or not; for JSON, and `seconds` long. */
  readonly everyMs?: number;
}

/** What it found. */
export interface LoadResult {
  readonly answered: number;
  /** Answers that were no success, and requests without an answer. */
  readonly failed: number;
  /** From the first request to the last answer. */
  readonly tookMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly longestMs: number;
  /** How long each took; of a load with a pace. */
  readonly timesMs?: readonly number[];
}

/** A request of a load. */
export interface LoadRequest {
  /** Such as `ProjectService/GetProject`. */
  readonly operation: string;
  /** JSON text. A load in a binary form converts it. */
  readonly body: string;
  /** Token of the caller; the task's when absent. Only for JSON without a pace. */
  readonly token?: string;
}

/**
 * A task for a load process: a closed loop, in which each connection sends its next request after its answer, or a fixed
 * rate.
 */
export interface LoadTask {
  readonly form: "json" | "binary" | "grpc";
  readonly url: string;
  readonly token: string;
  readonly connections: number;
  readonly requests: readonly LoadRequest[];
  /** The duration. With `amount`, the load instead ends after that many answers. */
  readonly seconds: number;
  readonly amount?: number;
  /** Interval at which requests start, whether or not earlier ones are answered. For JSON, and for `seconds`. */
  readonly everyMs?: number;
}

/** The result of a load. */
export interface LoadResult {
  readonly answered: number;
  /** Number of unsuccessful answers and of requests without an answer. */
  readonly failed: number;
  /** From the first request to the last answer. */
  readonly tookMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly longestMs: number;
  /** The time of each request, for a load with a pace. */
  readonly timesMs?: readonly number[];
}

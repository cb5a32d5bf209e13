/** A request that is about to be sent. */
export interface BegunRequest {
  readonly method: string;
  readonly url: URL;
  /** The place in the trace of what sends it; undefined where that has none. */
  readonly traceparent: string | undefined;
}

/** A request that a trace has a span of. */
export interface TracedRequest {
  /** The request's own place in the trace, for its header. */
  readonly traceparent: string;
  /**
   * Takes the status of its answer, and whether one of 400 to 499 was to be expected, or a short name from a fixed set of why
   * there was none.
   */
  end(
    outcome:
      | { readonly status: number; readonly mayBeRefused?: boolean | undefined }
      | { readonly errorType: string },
  ): void;
}

/** The spans of the requests that a server sends to others. */
export interface RequestTraces {
  /** Returns the span of a request; undefined where it gets none. */
  beginRequest(request: BegunRequest): TracedRequest | undefined;
}

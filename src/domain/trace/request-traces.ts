/** A request that is about to be sent. */
export interface BegunRequest {
  readonly method: string;
  readonly url: URL;
  /** Position in the trace of the span that sends it; undefined without a trace. */
  readonly traceparent: string | undefined;
}

/** A request that has a span. */
export interface TracedRequest {
  /** The request's position in the trace, for its header. */
  readonly traceparent: string;
  /**
   * Ends the span. Takes the status of the response, and whether a status of 400 to 499 was expected; or, when there
   * was no response, the reason: a short name from a fixed set.
   */
  end(
    outcome:
      | { readonly status: number; readonly mayBeRefused?: boolean | undefined }
      | { readonly errorType: string },
  ): void;
}

/** Creates the spans of the requests that a server sends to others. */
export interface RequestTraces {
  /** Begins the span of a request; undefined when it gets none. */
  beginRequest(request: BegunRequest): TracedRequest | undefined;
}

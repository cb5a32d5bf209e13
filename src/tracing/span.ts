/** A span that has ended. Its content comes from fixed sets or is an id: no name, no text of a person, no secret. */
export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the root of a trace. */
  readonly parentSpanId: string;
  readonly name: string;
  /** `server` for a call from another process, `client` for one to another. Default neither. */
  readonly side?: "server" | "client";
  /** Milliseconds since 1970 UTC. */
  readonly start: number;
  readonly end: number;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  readonly hasFailed: boolean;
}

/** Returns the name of an enum's value in lower case, such as `pull_request`. */
export function valueName(names: Readonly<Record<number, string>>, value: number | undefined): string {
  return (names[value ?? 0] ?? "unspecified").toLowerCase();
}

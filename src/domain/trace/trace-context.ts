/** A position in a trace, as defined by W3C Trace Context. */
export interface TraceParent {
  /** 32 hexadecimal digits in lower case. */
  readonly traceId: string;
  /** 16 hexadecimal digits in lower case; empty for the root of the trace. */
  readonly parentSpanId: string;
  /** True when the spans of the trace are exported. */
  readonly sampled: boolean;
}

/** Version, trace, span and flags. Later versions may append fields; `ff` is invalid. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(?:$|-.{0,256}$)/;
const LENGTH = 55;
const NO_TRACE = "0".repeat(32);
const NO_SPAN = "0".repeat(16);

/** Parses a `traceparent`; undefined when malformed, which counts as absent. */
export function parseTraceparent(text: string): TraceParent | undefined {
  if (text.length < LENGTH || !TRACEPARENT.test(text)) return undefined;
  if (text.length > LENGTH && text.startsWith("00")) return undefined;
  const traceId = text.slice(3, 35);
  const parentSpanId = text.slice(36, 52);
  if (traceId === NO_TRACE || parentSpanId === NO_SPAN) return undefined;
  return { traceId, parentSpanId, sampled: (Number.parseInt(text.slice(53, LENGTH), 16) & 1) === 1 };
}

/** Returns the `traceparent` that names a span of a trace. */
export function formatTraceparent(
  { traceId, sampled }: Pick<TraceParent, "traceId" | "sampled">,
  spanId: string,
): string {
  return `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;
}

/**
 * Returns the `traceparent` of a request that something with a UUID sends as part of its span; undefined without a
 * trace.
 */
export function traceparentOf(
  trace: Pick<TraceParent, "traceId" | "sampled"> | undefined,
  uuid: string,
): { readonly traceparent?: string } {
  return trace ? { traceparent: formatTraceparent(trace, spanIdOf(uuid)) } : {};
}

/** Returns the id of the trace that begins with something that has a UUID: the digits of the UUID. */
export function traceIdOf(uuid: string): string {
  return uuid.replaceAll("-", "");
}

/** Returns the span id of something with a UUID v7: its last 64 bits, nearly all of which are random. */
export function spanIdOf(uuid: string): string {
  return traceIdOf(uuid).slice(-16);
}

/**
 * Returns the id of the span of a part of something with a UUID. It is deterministic: each reader computes it, and
 * nothing stores it.
 *
 * @param part names the part, such as `step 3`
 */
export function partSpanId(uuid: string, part: string): string {
  // 64-bit FNV-1a, from the 62 random bits of the UUID.
  let hash = BigInt(`0x${spanIdOf(uuid)}`) ^ 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(part)) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & MASK;
  return (hash === 0n ? 1n : hash).toString(16).padStart(16, "0");
}

const MASK = (1n << 64n) - 1n;

/** Returns the id of the span of a step of an action. */
export function stepSpanId(actionId: string, stepIndex: number): string {
  return partSpanId(actionId, `step ${stepIndex}`);
}

/**
 * Returns the `traceparent` for what a step of an action starts; undefined when the action has no trace.
 *
 * @param traceparent the action's, as its runner leased it
 */
export function stepTraceparent(
  { traceparent = "", actionId }: { readonly traceparent?: string | undefined; readonly actionId: string },
  stepIndex: number,
): string | undefined {
  const trace = parseTraceparent(traceparent);
  return trace && formatTraceparent(trace, stepSpanId(actionId, stepIndex));
}

/** Returns the position in the trace under a span. */
export function under(
  { traceId, sampled }: Pick<TraceParent, "traceId" | "sampled">,
  spanId: string,
): TraceParent {
  return { traceId, parentSpanId: spanId, sampled };
}

/**
 * Returns whether a trace is sampled. The trace's id alone decides, so that all servers agree.
 *
 * @param ratio the sampling ratio, from 0 to 1
 */
export function isAmongSampled(traceId: string, ratio: number): boolean {
  // The last 52 bits: random even in an id that begins with a time, and a number can hold them.
  return Number.parseInt(traceId.slice(-13), 16) < ratio * 2 ** 52;
}

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { BinaryReader } from "@bufbuild/protobuf/wire";

/** A span as a collector receives it, with what its name and ids say. */
export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the first of a trace. */
  readonly parentSpanId: string;
  readonly name: string;
  /** SpanKind by number: 1 internal, 2 server, 3 client. */
  readonly kind: number;
  /** Milliseconds since 1970 UTC. */
  readonly start: number;
  readonly end: number;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  readonly hasFailed: boolean;
}

export interface SpanCollector {
  readonly url: string;
  /** The spans so far. */
  spans(): readonly CollectedSpan[];
  /** All that it received, to look for what must not be in it. */
  text(): string;
  close(): void;
}

/**
 * Starts a stand-in for a collector that takes OTLP over HTTP, and reads its Protobuf by the numbers of its
 * specification, with nothing of what wrote it.
 * @param status with which it answers
 */
export async function startSpanCollector(status = 200): Promise<SpanCollector> {
  const bodies: Buffer[] = [];
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk);
    if (req.url === "/v1/traces") bodies.push(Buffer.concat(chunks));
    res.writeHead(status).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    spans: () =>
      bodies.flatMap((body) =>
        // ExportTraceServiceRequest.resource_spans, ResourceSpans.scope_spans, ScopeSpans.spans
        [1, 2, 2]
          .reduce<readonly Uint8Array[]>(
            (parts, number) => parts.flatMap((part) => all(part, number) as Uint8Array[]),
            [body],
          )
          .map(toSpan),
      ),
    text: () => Buffer.concat(bodies).toString("latin1"),
    close: () => void server.close(),
  };
}

type Value = Uint8Array | bigint;

/** Returns the values of a field. */
function all(message: Uint8Array, number: number): Value[] {
  const reader = new BinaryReader(message);
  const values: Value[] = [];
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field !== number) reader.skip(wireType, field);
    else if (wireType === 2) values.push(reader.bytes());
    else values.push(BigInt(wireType === 1 ? reader.fixed64() : reader.uint64()));
  }
  return values;
}

const bytes = (message: Uint8Array, number: number) =>
  Buffer.from((all(message, number)[0] ?? []) as Uint8Array);
const hex = (message: Uint8Array, number: number) => bytes(message, number).toString("hex");
const value = (message: Uint8Array, number: number) => Number(all(message, number)[0] ?? 0);
/** Reads nanoseconds, which a number does not hold exactly, as milliseconds; microseconds are kept. */
const milliseconds = (message: Uint8Array, number: number) =>
  Number(BigInt((all(message, number)[0] ?? 0n) as bigint) / 1_000n) / 1e3;

function toSpan(span: Uint8Array): CollectedSpan {
  const attributes = all(span, 9).map((each) => {
    const any = bytes(each as Uint8Array, 2);
    const [text] = all(any, 1);
    const [flag] = all(any, 2);
    const of = text ? bytes(any, 1).toString() : flag === undefined ? value(any, 3) : flag === 1n;
    return [bytes(each as Uint8Array, 1).toString(), of] as const;
  });
  return {
    traceId: hex(span, 1),
    spanId: hex(span, 2),
    parentSpanId: hex(span, 4),
    name: bytes(span, 5).toString(),
    kind: value(span, 6),
    start: milliseconds(span, 7),
    end: milliseconds(span, 8),
    attributes: Object.fromEntries(attributes),
    hasFailed: value(bytes(span, 15), 3) === 2,
  };
}

import type { AuditSink, ExportLine } from "../domain/record/audit-export.ts";
import { fetchBounded } from "../scm/bounded-fetch.ts";

/** Time that the collector has to confirm a batch. */
const ANSWER_MS = 10_000;

/** Severity number of "INFO" in OTLP. */
const INFO = 9;

const text = (key: string, stringValue: string) => ({ key, value: { stringValue } });

/**
 * A collector that accepts logs by OTLP over HTTP, in JSON. A batch counts as delivered when the collector returns
 * 200 and rejects no record: a best-effort exporter would lose the rejected ones.
 */
export class AuditCollector implements AuditSink {
  readonly target = "otlp";
  readonly #url: string;
  readonly #now: () => number;
  readonly #draining: AbortSignal;
  readonly #headers: Readonly<Record<string, string>>;

  /** @param endpoint the URL of the collector, without the path of logs */
  constructor(
    endpoint: string,
    {
      now,
      draining,
      headers = {},
    }: {
      readonly now: () => number;
      readonly draining: AbortSignal;
      readonly headers?: Readonly<Record<string, string>>;
    },
  ) {
    this.#url = `${endpoint}/v1/logs`;
    this.#now = now;
    this.#draining = draining;
    this.#headers = headers;
  }

  async take(lines: readonly ExportLine[]): Promise<void> {
    const answer = await fetchBounded(this.#url, {
      method: "POST",
      headers: { ...this.#headers, "content-type": "application/json" },
      body: JSON.stringify(this.#request(lines)),
      redirect: "error",
      signal: AbortSignal.any([this.#draining, AbortSignal.timeout(ANSWER_MS)]),
    });
    const said = await answer.text();
    if (answer.status !== 200) throw new Error(`the collector answered ${answer.status}`);
    const rejected = rejectedIn(said);
    if (rejected !== 0) throw new Error(`the collector rejected ${rejected} records`);
  }

  #request(lines: readonly ExportLine[]) {
    const logRecords = lines.map((line) => this.#record(line));
    const resource = { attributes: [text("service.name", "chartroom")] };
    return { resourceLogs: [{ resource, scopeLogs: [{ scope: { name: "chartroom.audit" }, logRecords }] }] };
  }

  /** Returns a record whose body is exactly the line of an export. */
  #record(line: ExportLine) {
    const observed = `${this.#now()}000000`;
    const record = { observedTimeUnixNano: observed, severityNumber: INFO, severityText: "INFO" };
    const body = { stringValue: JSON.stringify(line) };
    if (!("row" in line))
      return { ...record, timeUnixNano: observed, eventName: "chartroom.audit.reached", body };
    const { id, chain, sequence, at } = line.row;
    const attributes = [
      text("chartroom.audit.id", id),
      ...(chain === null ? [] : [text("chartroom.audit.chain", chain)]),
      { key: "chartroom.audit.sequence", value: { intValue: String(sequence) } },
    ];
    return {
      ...record,
      ...{ timeUnixNano: `${Date.parse(at)}000000`, eventName: "chartroom.audit.row", body, attributes },
    };
  }
}

/** Returns how many records a response says were rejected; it may be empty. */
function rejectedIn(said: string): number {
  if (said.trim() === "") return 0;
  const { partialSuccess } = JSON.parse(said) as {
    partialSuccess?: { rejectedLogRecords?: string | number };
  };
  return Number(partialSuccess?.rejectedLogRecords ?? 0);
}

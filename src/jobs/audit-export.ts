import { namedAnchor } from "../domain/record/audit-anchor.ts";
import { type AuditSink, type ExportLine, exportedRow, namedHead } from "../domain/record/audit-export.ts";
import { AUDIT_EXPORT } from "../domain/record/audit-position.ts";
import type { ChainHead } from "../domain/record/audit-verification.ts";
import { auditMacOf, type Keys } from "../keys.ts";
import {
  findConfirmed,
  findLaggingChains,
  findRowsAfter,
  type LaggingChain,
  setConfirmed,
} from "../store/record/audit-export.ts";
import type { Store } from "../store/store.ts";
import type { Job, JobContext } from "./job.ts";
import { writeThenPause } from "./job-writes.ts";

const EVERY_MS = 1_000;

/** Delay before a target is retried after a failure: the first delay, doubled up to the last. */
const FIRST_WAIT_MS = 1_000;
const LAST_WAIT_MS = 60_000;

/** Maximum rows and bytes sent to a target at a time; one more row may have the maximum length of a row. */
const ROWS_PER_BATCH = 500;
const BYTES_PER_BATCH = 512 * 1024;

/** Number of chains that are checked together, and of rows that are read at once. */
const CHAINS_AT_ONCE = 100;
const ROWS_READ = 100;

interface Batch {
  readonly lines: ExportLine[];
  /** The newest entry of each chain among the lines. */
  readonly reached: Map<string | null, ChainHead>;
  bytes: number;
}

type SealingKeys = Pick<Keys, "ids" | "auditMac" | "audit">;

const isFull = ({ lines, bytes }: Batch) => lines.length >= ROWS_PER_BATCH || bytes >= BYTES_PER_BATCH;

/**
 * Exports the rows that a target has not confirmed yet, chain by chain, and stores the position after each
 * confirmation. If the process is killed in between, it resends rows that the target may already have: each is
 * identified by its id.
 *
 * @param keys seal and verify the position of the target
 * @param draining ends it between two batches
 * @returns the number of rows
 */
export async function exportAudit(
  store: Store,
  keys: SealingKeys,
  sink: AuditSink,
  draining?: AbortSignal,
): Promise<number> {
  const mac = auditMacOf(keys);
  let exported = 0;
  while (!draining?.aborted) {
    const behind = await findLaggingChains(store.reader, mac, sink.target, CHAINS_AT_ONCE);
    const batch = await nextBatch(store, behind);
    const { lines, reached } = batch;
    if (lines.length === 0) break;
    const heads = [...reached].map(([chain, head]) => namedHead(chain, head));
    await sink.take([...lines, { reached: heads }], () => findConfirmed(store.reader, mac, sink.target));
    const confirm = (tx: Parameters<typeof setConfirmed>[0]) =>
      setConfirmed(tx, keys.audit, sink.target, reached);
    await writeThenPause(store, AUDIT_EXPORT, confirm, { locks: [null] });
    exported += lines.length;
  }
  return exported;
}

async function nextBatch(store: Store, behind: readonly LaggingChain[]): Promise<Batch> {
  const batch: Batch = { lines: [], reached: new Map(), bytes: 0 };
  for (const { chain, confirmed, anchor } of behind) {
    if (anchor && !isFull(batch))
      batch.lines.push({ after: [namedHead(chain, confirmed)], anchors: [namedAnchor(anchor)] });
    for (let last = confirmed; !isFull(batch); ) {
      const rows = await findRowsAfter(store.reader, chain, last.sequence, ROWS_READ);
      for (const row of rows) {
        if (isFull(batch)) break;
        batch.lines.push({ row: exportedRow(row, last.chain_hash) });
        batch.bytes += row.diff.length;
        last = { sequence: row.sequence, chain_hash: row.hash };
        batch.reached.set(chain, last);
      }
      if (rows.length < ROWS_READ) break;
    }
    if (isFull(batch)) break;
  }
  return batch;
}

/** Creates the jobs that continuously export the audit trail: one for each target, so that none waits for another. */
export function auditExportJobs({
  store,
  keys,
  auditSinks,
  log,
  draining,
}: Pick<JobContext, "store" | "keys" | "auditSinks" | "log" | "draining">): Job[] {
  return auditSinks.map((sink) => {
    let isRepaired = false;
    let wait: { readonly until: number; readonly ms: number } | undefined;
    const run = async (): Promise<void> => {
      if (wait && performance.now() < wait.until) return;
      try {
        // Now rather than with the next row: until then no check would read the file.
        if (!isRepaired) await sink.repair?.();
        isRepaired = true;
        // Nothing stays open between two runs, so a server that stops has nothing to close.
        await exportAudit(store, keys, sink, draining).finally(() => sink.close?.());
        wait = undefined;
      } catch (err) {
        if (draining.aborted) return;
        const ms = Math.min(LAST_WAIT_MS, wait ? 2 * wait.ms : FIRST_WAIT_MS);
        wait = { until: performance.now() + ms, ms };
        log.error(
          { err, target: sink.target, retryMs: ms },
          "the audit trail could not be exported; nothing is lost",
        );
      }
    };
    return { name: `audit-export to ${sink.target}`, everyMs: EVERY_MS, run };
  });
}

import type { TraceParent } from "../../domain/trace/trace-context.ts";
import { mayStore, TRACES_LEVEL } from "../../store/feature-level.ts";
import type { WriteTransaction } from "../../store/store.ts";

/**
 * Returns the trace that a new execution names: that of the call that starts it, or one of its own where the server sends
 * traces; undefined for none, and while servers run that would lose it.
 */
export function newTrace(tx: WriteTransaction, id: string): TraceParent | undefined {
  return mayStore(tx, TRACES_LEVEL) ? tx.traceOf(id) : undefined;
}

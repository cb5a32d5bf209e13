import type { TraceParent } from "../../domain/trace/trace-context.ts";
import { mayStore, TRACES_LEVEL } from "../../store/feature-level.ts";
import type { WriteTransaction } from "../../store/store.ts";

/**
 * Returns the trace of a new execution: the trace of the call that starts it, or a new one when the server exports
 * traces. Returns undefined when there is neither, or while an older server runs that would lose it.
 */
export function newTrace(tx: WriteTransaction, id: string): TraceParent | undefined {
  return mayStore(tx, TRACES_LEVEL) ? tx.traceOf(id) : undefined;
}

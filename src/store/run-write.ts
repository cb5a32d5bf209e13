import type { Kysely } from "kysely";
import type { StoreMeasures } from "../domain/measures.ts";
import type { TraceParent } from "../domain/trace/trace-context.ts";
import type { Group } from "./group.ts";
import type { HeldLocks } from "./held-locks.ts";
import { sealAnchor } from "./record/audit-ageing.ts";
import { type AuditSeal, buildRecord, readHeadAhead } from "./record/record.ts";
import type { Schema } from "./schema.ts";
import type { Actor, Change, Scope, WriteTransaction } from "./store.ts";
import { topicsOf } from "./topics.ts";

/** Settings that apply to every write. */
export interface WriteSettings {
  readonly now: () => number;
  readonly newId: () => string;
  /** Infinity without a limit. */
  readonly quotaBytes: number;
  readonly audit: AuditSeal;
  readonly measures: StoreMeasures;
}

/** The parts of a write that depend on the engine. */
export interface WriteEngine {
  readonly db: Kysely<Schema>;
  readonly group: Group;
  readonly featureLevel: number;
  readonly trace: TraceParent | undefined;
  deleteOwnedRows: WriteTransaction["deleteOwnedRows"];
  indexText(
    tx: Pick<WriteTransaction, "db" | "readWriteBack" | "setWriteBack">,
    scope: Scope,
    text: string,
  ): Promise<number>;
  /** Runs a part of a write in a savepoint; `undo` removes what the write has recorded since. */
  attempt<T>(part: () => Promise<T>, undo: () => void): Promise<T>;
  /** The locks of what the write may change. */
  readonly locks: HeldLocks;
  /** Awaited after each record, so that a long write lets other work run. */
  pause?(): Promise<void> | undefined;
}

/**
 * Runs `fn` as one write of a commit and adds its records to the commit's group.
 * @returns its result, and the topics whose listeners are to be called after the commit
 * @throws the error of `fn`
 */
export async function runWrite<T>(
  actor: Actor,
  operation: string,
  fn: (tx: WriteTransaction) => Promise<T>,
  settings: WriteSettings,
  engine: WriteEngine,
): Promise<{ readonly result: T; readonly topics: ReadonlySet<string> }> {
  const { db, group } = engine;
  const changes: Change[] = [];
  const topics = new Set<string>();
  const tx: WriteTransaction = {
    db,
    now: settings.now(),
    featureLevel: engine.featureLevel,
    quotaBytes: settings.quotaBytes,
    newId: settings.newId,
    record(change) {
      engine.locks.requireChange(change);
      changes.push(change);
    },
    touch: (id) => void topics.add(id),
    countOutcome: (outcome) => group.add(group.outcomes, outcome),
    traceOf: (id) => engine.trace ?? settings.measures.traces?.begin(id),
    sealAnchor: (facts) => sealAnchor(settings.audit, actor, operation, facts),
    deleteOwnedRows: engine.deleteOwnedRows,
    indexText: (scope, text) => engine.indexText(tx, scope, text),
    readWriteBack: (row, key) => group.readWriteBack(row, key),
    setWriteBack: (row, key, value) => group.setWriteBack(row, key, value),
    attempt(part) {
      const [recorded, mark] = [changes.length, group.mark()];
      return engine.attempt(part, () => {
        changes.length = recorded;
        group.backTo(mark);
      });
    },
  };
  const result = await fn(tx);
  // Checked here so that a missing organization fails this write, and not its whole commit.
  for (const id of new Set(changes.map(({ organizationId }) => organizationId))) await readHeadAhead(tx, id);
  for (const change of changes) {
    group.record(buildRecord(tx, settings.audit, actor, operation, change));
    await engine.pause?.();
    for (const topic of topicsOf(change)) topics.add(topic);
  }
  return { result, topics };
}

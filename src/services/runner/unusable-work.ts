import { create } from "@bufbuild/protobuf";
import { FinishWorkRequest_Outcome, FinishWorkRequestSchema } from "#gen/runner/v1/work_service_pb.js";
import type { StoredWork } from "../../store/runner/work.ts";
import { postponeWork } from "../../store/runner/work-lease.ts";
import { type Scope, StoreUnavailable, type WriteTransaction } from "../../store/store.ts";
import { MAX_ATTEMPTS } from "./held-lease.ts";
import type { FindHandler } from "./work-handler.ts";

/** The delay for work that can be neither leased nor failed; in the meantime an operator may repair its rows. */
const RETRY_AFTER_MS = 3_600_000;

const MESSAGE =
  "the server cannot read what the work needs; the operator finds the cause in the server's log";

/** Work whose assignment failed, for the log. */
export interface UnusableWork {
  readonly workId: string;
  readonly organizationId: string;
  /** WorkKind by number. */
  readonly kind: number;
  readonly subjectId: string;
  /** True when its subject has failed; otherwise the work is retried in an hour. */
  readonly failed: boolean;
}

/** Logs unusable work and the cause. */
export type ReportUnusableWork = (work: UnusableWork, cause: unknown) => void;

/**
 * Fails work whose assignment failed. Its subject fails with the reason `work_unusable` if its kind has failure
 * reasons. When the failure cannot be written (an unreadable action, for example), the work stays in the queue and is
 * retried in an hour.
 *
 * @param cause the error of the assignment; only for the log
 * @throws when the database accepts neither
 */
export async function failUnusableWork(
  tx: WriteTransaction,
  scope: Scope,
  work: StoredWork,
  cause: unknown,
  {
    handlerOf,
    onUnusableWork,
  }: { readonly handlerOf: FindHandler; readonly onUnusableWork: ReportUnusableWork },
): Promise<void> {
  let failed = true;
  try {
    const failure = { reason: "work_unusable", message: MESSAGE };
    await tx.attempt(() => endAsFailed(tx, scope, work, handlerOf, failure));
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    failed = false;
    await postponeWork(tx, work.id, tx.now + RETRY_AFTER_MS);
  }
  const { id: workId, organization_id: organizationId, kind, subject_id: subjectId } = work;
  onUnusableWork({ workId, organizationId, kind, subjectId, failed }, cause);
}

/** Ends work without a lease, like work of a runner whose last attempt failed. */
export async function endAsFailed(
  tx: WriteTransaction,
  scope: Scope,
  work: StoredWork,
  handlerOf: FindHandler,
  failure: { readonly reason: string; readonly message: string },
): Promise<void> {
  const outcome = create(FinishWorkRequestSchema, {
    outcome: FinishWorkRequest_Outcome.FAILED,
    failure,
  });
  const last = { ...work, attempt: MAX_ATTEMPTS };
  await handlerOf(work.kind).end(tx, scope, last, { kind: "finished", outcome });
}

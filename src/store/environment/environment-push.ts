import type { Environment } from "#gen/service/v1/environment_pb.js";
import type { Scope, WriteTransaction } from "../store.ts";

/** The destination of pushes of an environment's files. */
export interface RecordedPush {
  readonly remote?: string | undefined;
  readonly branch: string;
  readonly commit?: string | undefined;
  readonly force: boolean;
}

/** Records that a push of an environment begins. It changes no row: its result is at the remote. */
export function recordPush(
  tx: WriteTransaction,
  { organizationId }: Scope,
  { id, metadata }: Environment,
  { remote = "", branch, commit = "", force }: RecordedPush,
): void {
  tx.record({
    organizationId,
    type: "environment",
    id,
    kind: "updated",
    operation: "environment/pushed",
    before: {},
    after: { push: { remote, branch, commit, force } },
    facts: { environmentId: id, creatorId: metadata?.creator?.id ?? null },
  });
}

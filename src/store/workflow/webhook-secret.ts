import type { Subject } from "#gen/service/v1/identity_pb.js";
import { type Workflow, WorkflowSchema } from "#gen/service/v1/workflow_pb.js";
import { isSameSubject, uniqueSubjects } from "../../domain/source/source-trust.ts";
import { subjectsOf, subjectsText } from "../identity/source-setter.ts";
import { toBody } from "../json.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Handle, Reader, Scope, WriteTransaction } from "../store.ts";
import type { WorkflowSecretTable } from "./workflow-schema.ts";

/** An encrypted secret, and the id of its key. */
export interface SealedSecret {
  readonly keyId: string;
  readonly sealed: Uint8Array;
}

/** The secrets that sign deliveries to a workflow's webhook. */
export interface SealedWebhookSecrets {
  readonly current: SealedSecret;
  /** The previous secret, and the end of its validity: milliseconds since 1970 UTC, exclusive. */
  readonly previous: (SealedSecret & { readonly until: number }) | undefined;
}

const selectSecrets = prepared<{ workflowId: string }, WorkflowSecretTable>((db, { workflowId }) =>
  db.selectFrom("workflow_secret").selectAll().where("workflow_id", "=", workflowId),
);

/** Returns the secrets of a workflow by which a delivery is authenticated before any other processing. */
export async function findWebhookSecrets(
  db: Reader,
  workflowId: string,
): Promise<SealedWebhookSecrets | undefined> {
  const [row] = await selectSecrets(db, { workflowId });
  return row && secretsOfRow(row);
}

/**
 * Returns the subjects that were given a secret that is valid at `now` (milliseconds since 1970
 * UTC): besides the hosts that they gave it to, they can sign a delivery.
 */
export async function findWebhookSecretHolders(
  db: Reader,
  workflowId: Handle<"workflow">,
  now: number,
): Promise<Subject[]> {
  const [row] = await selectSecrets(db, { workflowId });
  if (!row) return [];
  const former = (row.previous_until ?? 0) > now ? subjectsOf(row.previous_known_to) : [];
  return uniqueSubjects(subjectsOf(row.known_to), former);
}

/** Stores the first secret of a new workflow; the workflow's own record covers both. */
export async function insertWebhookSecret(
  { db }: WriteTransaction,
  workflowId: Handle<"workflow">,
  current: SealedSecret,
): Promise<void> {
  const columns = secretColumns({ current, previous: undefined });
  await builderOf(db)
    .insertInto("workflow_secret")
    .values({ workflow_id: workflowId, ...columns, known_to: "[]", previous_known_to: "[]" })
    .execute();
}

/**
 * Replaces the secrets of a workflow by others, which only the actor is given, and records that in
 * the audit log.
 */
export async function updateWebhookSecrets(
  tx: WriteTransaction,
  scope: Scope,
  workflow: Workflow,
  secrets: SealedWebhookSecrets,
  knownTo: Subject,
): Promise<void> {
  await replaceWebhookSecrets(tx, workflow.id, secrets);
  await builderOf(tx.db)
    .updateTable("workflow_secret")
    .set((eb) => ({ previous_known_to: eb.ref("known_to"), known_to: subjectsText([knownTo]) }))
    .where("workflow_id", "=", workflow.id)
    .execute();
  const body = JSON.parse(toBody(WorkflowSchema, workflow));
  tx.record({
    organizationId: scope.organizationId,
    type: "workflow",
    id: workflow.id,
    kind: "updated",
    before: JSON.stringify({ ...body, webhookSecret: "(secret)" }),
    after: JSON.stringify({ ...body, webhookSecret: "(new secret)" }),
  });
}

/**
 * Stores the same secrets sealed with other keys. The workflow does not change, so nothing is
 * recorded.
 */
export async function replaceWebhookSecrets(
  { db }: WriteTransaction,
  workflowId: string,
  secrets: SealedWebhookSecrets,
): Promise<void> {
  await builderOf(db)
    .updateTable("workflow_secret")
    .set(secretColumns(secrets))
    .where("workflow_id", "=", workflowId)
    .execute();
}

/** Stores and records that the actor of the write was given a workflow's secret. */
export async function recordWebhookSecretRead(
  tx: WriteTransaction,
  scope: Scope,
  workflowId: string,
  knownTo: Subject,
): Promise<void> {
  const [row] = await selectSecrets(tx.db, { workflowId });
  const before = row ? subjectsOf(row.known_to) : [];
  if (!before.some((subject) => isSameSubject(subject, knownTo))) {
    const known_to = subjectsText([...before, knownTo]);
    await builderOf(tx.db)
      .updateTable("workflow_secret")
      .set({ known_to })
      .where("workflow_id", "=", workflowId)
      .execute();
  }
  tx.record({ organizationId: scope.organizationId, type: "workflow", id: workflowId, kind: "read" });
}

/**
 * Returns up to `limit` workflows that have a secret under a key, including the previous one. For
 * the system, so without a scope.
 */
export async function findWebhookSecretsUnderKey(
  db: Reader,
  keyId: string,
  limit: number,
): Promise<(Scope & { readonly workflowId: string; readonly secrets: SealedWebhookSecrets })[]> {
  const rows = await builderOf(db)
    .selectFrom("workflow_secret")
    .innerJoin("workflow", "workflow.id", "workflow_id")
    .selectAll("workflow_secret")
    .select("workflow.organization_id as organizationId")
    .where((eb) => eb.or([eb("key_id", "=", keyId), eb("previous_key_id", "=", keyId)]))
    .limit(limit)
    .execute();
  return rows.map(({ organizationId, ...row }) => ({
    organizationId,
    workflowId: row.workflow_id,
    secrets: secretsOfRow(row),
  }));
}

function secretColumns({ current, previous }: SealedWebhookSecrets) {
  return {
    key_id: current.keyId,
    sealed: current.sealed,
    previous_key_id: previous?.keyId ?? null,
    previous_sealed: previous?.sealed ?? null,
    previous_until: previous?.until ?? null,
  };
}

function secretsOfRow(row: WorkflowSecretTable): SealedWebhookSecrets {
  const { key_id, sealed, previous_key_id, previous_sealed, previous_until } = row;
  return {
    current: { keyId: key_id, sealed },
    previous:
      previous_key_id !== null && previous_sealed !== null && previous_until !== null
        ? { keyId: previous_key_id, sealed: previous_sealed, until: previous_until }
        : undefined,
  };
}

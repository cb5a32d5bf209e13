import type { Subject } from "#gen/service/v1/identity_pb.js";
import { requireNoOwnSecrets } from "../../domain/agent/agent-input.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { isSameSubject, uniqueSubjects } from "../../domain/source/source-trust.ts";
import type { StoredAgentExecution } from "../../store/agent/agent-execution.ts";
import { findEnvironment } from "../../store/environment/environment.ts";
import { findSourceSetters, replaceSourceSetters } from "../../store/identity/source-setter.ts";
import { findSecretsOf } from "../../store/policy/secret.ts";
import { addSteerer } from "../../store/runner/work-sender.ts";
import type { WriteTransaction } from "../../store/store.ts";

/**
 * Keeps the credentials and secrets of the creator of an agent execution from a caller who sends to it by the role of a
 * group: from now on the caller is one of those who decide what its environment does, so that the creator's host
 * credentials are withheld, unless the caller could decide that anyway.
 *
 * @throws DomainError PERMISSION_DENIED where the work may have secrets that are the creator's own
 */
export async function keepCredentials(
  tx: WriteTransaction,
  caller: Caller,
  { execution, environmentId }: StoredAgentExecution,
): Promise<void> {
  const environment = await findEnvironment(tx.db, caller, environmentId);
  if (!environment) return;
  const creators = uniqueSubjects(
    [execution.metadata?.creator, environment.metadata?.creator].filter(
      (subject): subject is Subject => subject !== undefined && !isSameSubject(subject, caller.subject),
    ),
  );
  const ids = creators.map(({ id }) => id);
  if (ids.length > 0) requireNoOwnSecrets(await findSecretsOf(tx.db, caller, ids));
  // Also when the run, and with it the input, is gone before its environment.
  await addSteerer(tx, caller, environment.id, caller.subject);
  const setters = await findSourceSetters(tx.db, caller, "environment", environment);
  if (setters.some((setter) => isSameSubject(setter, caller.subject))) return;
  const { before, after } = await replaceSourceSetters(tx, caller, "environment", environment, [
    ...setters,
    caller.subject,
  ]);
  tx.record({
    organizationId: caller.organizationId,
    type: "environment",
    id: environment.id,
    kind: "updated",
    before: JSON.stringify({ sourceSetBy: before }),
    after: JSON.stringify({ sourceSetBy: after }),
    facts: { creatorId: environment.metadata?.creator?.id ?? null },
  });
}

import { deletedEnvironment } from "../../../domain/environment/environment.ts";
import { findEnvironment } from "../../../store/environment/environment.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { changeEnvironment } from "../../environment/environment-change.ts";

/** Requests the deletion of an action's environment; its runner removes it. Does nothing if there is none. */
export async function requestEnvironmentDeletion(
  tx: WriteTransaction,
  scope: Scope,
  environmentId: string,
): Promise<void> {
  if (environmentId === "") return;
  const environment = await findEnvironment(tx.db, scope, environmentId);
  const deleted = environment && deletedEnvironment(environment);
  if (deleted) await changeEnvironment(tx, scope, environment, deleted);
}

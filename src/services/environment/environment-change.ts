import type { Environment } from "#gen/service/v1/environment_pb.js";
import { removeEnvironment, updateEnvironment } from "../../store/environment/environment.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { createHook } from "../call/hook.ts";

/** Called with an environment before and after each change of it, in the transaction; after is undefined once it is removed. */
export const environmentChanged =
  createHook<[tx: WriteTransaction, scope: Scope, before: Environment, after: Environment | undefined]>(
    "changes of environments",
  );

/** Changes an environment, and with it the agent runs that work in it or wait for it. */
export async function changeEnvironment(
  tx: WriteTransaction,
  scope: Scope,
  before: Environment,
  after: Environment,
): Promise<void> {
  await updateEnvironment(tx, scope, before, after);
  await environmentChanged.call(tx, scope, before, after);
}

/** Removes an environment for good; agent runs that work in it are stopped. */
export async function deleteEnvironmentRow(
  tx: WriteTransaction,
  scope: Scope,
  environment: Environment,
): Promise<void> {
  await removeEnvironment(tx, scope, environment);
  await environmentChanged.call(tx, scope, environment, undefined);
}

import type { Environment } from "#gen/service/v1/environment_pb.js";
import {
  type EnvironmentUpdateOptions,
  removeEnvironment,
  updateEnvironment,
} from "../../store/environment/environment.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { createHook } from "../call/hook.ts";

/** The hook that is called on each change of an environment, in the transaction, with the environment before and after it; undefined after its removal. */
export const environmentChanged =
  createHook<[tx: WriteTransaction, scope: Scope, before: Environment, after: Environment | undefined]>(
    "changes of environments",
  );

/** Updates an environment, and the agent executions that work in it or wait for it. */
export async function changeEnvironment(
  tx: WriteTransaction,
  scope: Scope,
  before: Environment,
  after: Environment,
  options?: EnvironmentUpdateOptions,
): Promise<void> {
  await updateEnvironment(tx, scope, before, after, options);
  await environmentChanged.call(tx, scope, before, after);
}

/** Removes the row of an environment, and stops the agent executions that work in it. */
export async function deleteEnvironmentRow(
  tx: WriteTransaction,
  scope: Scope,
  environment: Environment,
): Promise<void> {
  await removeEnvironment(tx, scope, environment);
  await environmentChanged.call(tx, scope, environment, undefined);
}

import type { Environment } from "#gen/service/v1/environment_pb.js";
import {
  type EnvironmentUpdateOptions,
  findRemoval,
  updateEnvironment,
} from "../../store/environment/environment.ts";
import type { EnvironmentRemovalOptions } from "../../store/environment/environment-work.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { createHook } from "../call/hook.ts";

/**
 * The hook for each change of an environment, in its transaction. It gets the environment before and after the
 * change; undefined after a removal. It is called before the write, reads the rows that depend on the environment,
 * and returns a function that is called after the write.
 */
export const environmentChanged = createHook<
  [
    tx: WriteTransaction,
    scope: Scope,
    before: Environment,
    after: Environment | undefined,
    known?: KnownDependents,
  ],
  () => Promise<void>
>("changes of environments");

/** What is known of the rows that depend on an environment. */
export interface KnownDependents {
  /** False when no agent execution is in the environment or waits for it; default true. */
  readonly hasAgents?: boolean;
}

/** Updates an environment, and the agent executions that work in it or wait for it. */
export async function changeEnvironment(
  tx: WriteTransaction,
  scope: Scope,
  before: Environment,
  after: Environment,
  options: EnvironmentUpdateOptions & KnownDependents = {},
): Promise<void> {
  const follow = await environmentChanged.call(tx, scope, before, after, options);
  await updateEnvironment(tx, scope, before, after, options);
  await follow();
}

/** Removes the row of an environment, and stops the agent executions that work in it. */
export async function deleteEnvironmentRow(
  tx: WriteTransaction,
  scope: Scope,
  environment: Environment,
): Promise<void> {
  const remove = await findEnvironmentRemoval(tx, scope, environment);
  await remove();
}

/** Reads the rows to remove together with an environment. @returns the function that removes all of them */
export async function findEnvironmentRemoval(
  tx: WriteTransaction,
  scope: Scope,
  environment: Environment,
  options: EnvironmentRemovalOptions & KnownDependents = {},
): Promise<() => Promise<void>> {
  const [remove, follow] = await Promise.all([
    findRemoval(tx, scope, environment, options),
    environmentChanged.call(tx, scope, environment, undefined, options),
  ]);
  return async () => {
    await remove();
    await follow();
  };
}

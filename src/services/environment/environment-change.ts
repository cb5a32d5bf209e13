import type { Environment } from "#gen/service/v1/environment_pb.js";
import { removeEnvironment, updateEnvironment } from "../../store/environment/environment.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { environmentMoved } from "../agent/agent-environment.ts";

/** Changes an environment, and with it the agent runs that work in it or wait for it. */
export async function changeEnvironment(
  tx: WriteTransaction,
  scope: Scope,
  before: Environment,
  after: Environment,
): Promise<void> {
  await updateEnvironment(tx, scope, before, after);
  await environmentMoved(tx, scope, before, after);
}

/** Removes an environment for good; agent runs that work in it are stopped. */
export async function dropEnvironment(
  tx: WriteTransaction,
  scope: Scope,
  environment: Environment,
): Promise<void> {
  await removeEnvironment(tx, scope, environment);
  await environmentMoved(tx, scope, environment, undefined);
}

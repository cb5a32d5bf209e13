import type { Caller } from "../../domain/identity/caller.ts";
import type { Reader, Scope } from "../../store/store.ts";

/** Access to the agent executions in environments, implemented by a later area. */
export interface EnvironmentRuns {
  /** Returns whether there is an agent execution in the environment that the caller may read. */
  mayReadAny(db: Reader, caller: Caller, environmentId: string): Promise<boolean>;
  /** Returns the ids of the agent executions in the environment that have not stopped. */
  findOpenIds(db: Reader, scope: Scope, environmentId: string): Promise<readonly string[]>;
}

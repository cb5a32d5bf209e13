/**
 * Rows of runners, their credentials and their work; ../schema.ts combines them and explains how to
 * read them.
 */

export interface RunnerTable {
  id: string;
  organization_id: string;
  creator_id: string;
  kind: number;
  body: string;
  /** 1 when it reported at its registration that it works on the server's or a member's own machine. */
  local: number;
  /** Time of its last heartbeat; null while it is not connected. */
  seen_at: number | null;
  /** Id of its newest instance; null before the first. */
  instance_id: string | null;
  /** Time of that instance's last heartbeat. */
  instance_seen_at: number | null;
  /** Maximum number of agent executions that it holds; null until it reports one. */
  agent_slots: number | null;
  /** Id of the stream that opened last for questions about its environments; null before the first. */
  requests_stream: string | null;
  /** Time until which that stream counts as open; null before the first, 0 once it has ended. */
  requests_until: number | null;
  /** The set of the policies that it reports to support (KeptPolicies); null until it reports them. */
  kept_policies: number | null;
  /** 1 while it should get work, as its body states. */
  available: number;
  /** 1 when it reports that it accepts agents that are defined by the API, as its body states. */
  api_agents: number;
}

export interface EnvironmentClassTable {
  id: string;
  organization_id: string;
  runner_id: string;
  enabled: number;
  body: string;
}

/**
 * A credential for a source-control host; its values are sealed, each for its own row and column.
 */
export interface HostTokenTable {
  id: string;
  organization_id: string;
  runner_id: string;
  host: string;
  subject_id: string;
  subject_principal: number;
  expires_at: number | null;
  key_id: string;
  sealed_token: Uint8Array;
  sealed_refresh_token: Uint8Array | null;
  body: string;
}

/** The work of runners, one row per subject; the row is removed when the work is finished. */
export interface WorkTable {
  /** Also the id of its leases. */
  id: string;
  organization_id: string;
  /** WorkKind by number. */
  kind: number;
  /** Id of the environment, action or prebuild. */
  subject_id: string;
  /** Id of the group that takes turns with others: an execution, or the creator of environments. */
  group_id: string;
  /** Id of the account that the work is done for; null for a service account's. */
  account_id: string | null;
  /** Id of the only runner that can do it; null for any that serves the class. */
  runner_id: string | null;
  /** Id of the class that its environment needs; null for none. */
  environment_class_id: string | null;
  /** Work is assigned by turn ascending: each group's items have turns of their own, so that groups alternate. */
  turn: number;
  /** Time before which it is not assigned. */
  not_before: number;
  /** Number of times that it was assigned. */
  attempt: number;
  /** Number of the newest lease; a report with an older one is rejected. */
  fence: number;
  /** Id of the runner that holds the lease; null without one. */
  leased_by: string | null;
  /** Id of the runner's instance that holds it; null for none. */
  instance_id: string | null;
  expires_at: number | null;
  /** 1 when its holder must stop, 2 when it must release the slot of an agent execution. */
  stop: number;
  /** Time since when a leased agent execution could release its slot; null while it cannot. */
  idle_since: number | null;
  /**
   * The set of the policies that its runner must support, as they were when the work was withheld from a runner that
   * does not support them; 0 if that never happened.
   */
  needs: number;
  /** Time since when no connected runner supports them; null while it does not wait for one. */
  waiting_since: number | null;
}

/** The turn of the work that an organization assigned last. */
export interface WorkTurnTable {
  organization_id: string;
  turn: number;
}

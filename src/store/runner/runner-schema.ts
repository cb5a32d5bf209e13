/** Rows of runners, their credentials and the work that they do; ../schema.ts unites them and says how to read them. */

export interface RunnerTable {
  id: string;
  organization_id: string;
  creator_id: string;
  kind: number;
  body: string;
  /** 1 when it said at its registration that it works on the server's or a member's own machine. */
  local: number;
  /** When it last gave a sign of life; null while it is not connected. */
  seen_at: number | null;
}

export interface EnvironmentClassTable {
  id: string;
  organization_id: string;
  runner_id: string;
  enabled: number;
  body: string;
}

/** A credential for a source-control host; its values are sealed, each for its own row and column. */
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

/** What runners have to do, one row a subject; the row goes when the work is finished. */
export interface WorkTable {
  /** Also the id of its leases. */
  id: string;
  organization_id: string;
  /** WorkKind by number. */
  kind: number;
  /** The environment, action or prebuild. */
  subject_id: string;
  /** What takes turns: an execution, or the creator of environments. */
  group_id: string;
  /** The account that the work is done for; null for a service account's. */
  account_id: string | null;
  /** The only runner that can do it; null for any that serves the class. */
  runner_id: string | null;
  /** The class that its environment needs; null for none. */
  environment_class_id: string | null;
  /** Work is given out by turn ascending: each group's items have turns of their own, so that groups alternate. */
  turn: number;
  /** It is not given out before. */
  not_before: number;
  /** How many times it was given out. */
  attempt: number;
  /** Number of the newest lease; a report under an older one is refused. */
  fence: number;
  /** The runner that holds the lease; null while nobody does. */
  leased_by: string | null;
  expires_at: number | null;
  /** 1 when its holder is to stop. */
  stop: number;
}

/** The turn of the work that an organization gave out last. */
export interface WorkTurnTable {
  organization_id: string;
  turn: number;
}

/** Rows of accounts, members, organizations and tokens; ../schema.ts unites them and says how to read them. */

export interface OrganizationTable {
  id: string;
  name: string;
  created_at: number;
  updated_at: number;
  /** Number of the organization's newest audit and event row; held during a commit, see WriteBackRow. */
  sequence: number;
  /** 1 when the operator marked it so; some policies need it. */
  enterprise: number;
  /** Hash of its newest audit row, which the next one continues; held like the number. */
  chain_hash: Uint8Array | null;
  /** Events up to this number were removed for their age; 0 while none was. */
  pruned_sequence: number;
}

/** Kept right by the engine, in the transaction of each change of what it counts; nothing else writes it. */
export interface OrganizationStorageTable {
  organization_id: string;
  /** Of texts and blobs, in all tables that migration 0016 names. */
  bytes: number;
}

/** A person's login. */
export interface AccountTable {
  id: string;
  name: string;
  email: string;
  created_at: number;
  updated_at: number;
  /** Set while the account is cut off. */
  blocked_at: number | null;
  /** By which members are put in order. */
  name_folded: string;
  /** Folded, one line each: name and email. */
  search_text: string;
}

/** An account's membership in one organization: the `user` of the contract. */
export interface MemberTable {
  id: string;
  organization_id: string;
  account_id: string;
  /** 1 administrator, 2 member. */
  role: number;
  /** When the account joined, or last joined again. */
  created_at: number;
  /** Set once the member was removed: its row stays, since what it made names it, and counts nowhere. */
  left_at: number | null;
}

/** A secret that was issued; the value itself is never stored. */
export interface TokenTable {
  id: string;
  organization_id: string;
  /** What it opens: `exchange` the registration of a runner, the others the API as what they name. */
  kind: "personal" | "service_account" | "runner" | "environment" | "exchange";
  /** The member, service account, runner or environment that it acts for. */
  subject_id: string;
  /** SHA-256 of the value, or its HMAC-SHA256 under the key `hmac_key_id` until its first use after that release. */
  hash: Uint8Array;
  hmac_key_id: string | null;
  read_only: number;
  expires_at: number;
  /** Kept out of the body: it changes on its own. */
  last_used_at: number | null;
  /**
   * PersonalAccessToken or ServiceAccountToken. Of an environment, for one that an agent run got, the run's id as
   * `agentExecutionId`. Otherwise an empty object.
   */
  body: string;
  /**
   * The account that made it; blocking that account disables it. Of an environment, the account that the agent
   * run is for that got it. Null for the operator's, a runner's and other tokens of environments.
   */
  creator_account_id: string | null;
  /** Set when it was disabled for good; it answers like an unknown one. */
  disabled_at: number | null;
}

export interface ServiceAccountTable {
  id: string;
  organization_id: string;
  creator_account_id: string | null;
  valid_until: number;
  suspended: number;
  /** Folded name and id, one a line. */
  search_text: string;
  body: string;
}

/** What an account pays for; only the operator adds one. */
export interface SubscriptionTable {
  id: string;
  account_id: string;
  name: string;
  created_at: number;
  cancelled_at: number | null;
}

/** The answer to the first block of an account, for repetitions of it. */
export interface BlockReceiptTable {
  account_id: string;
  blocked_at: number;
  /** BlockAccountResponse. */
  body: string;
}

/**
 * Rows of accounts, members, organizations and tokens; ../schema.ts combines them and explains how
 * to read them.
 */

export interface OrganizationTable {
  id: string;
  name: string;
  created_at: number;
  updated_at: number;
  /**
   * Number of the organization's newest audit and event row; cached during a commit, see
   * WriteBackRow.
   */
  sequence: number;
  /** 1 when the operator marked it as enterprise; some policies require it. */
  enterprise: number;
  /** Hash of its newest audit row, which the next one continues; cached like the number. */
  chain_hash: Uint8Array | null;
  /** Number up to which events were removed for their age; 0 if none were. */
  pruned_sequence: number;
  /** JSON array of the mail domains whose verified addresses join, in lower case. */
  invite_domains: string;
}

/** The invites with which accounts join an organization, at most one for each organization. */
export interface OrganizationInviteTable {
  id: string;
  organization_id: string;
  /** SHA-256 of the random id that its holders have, which finds it. */
  hash: Uint8Array;
  /** Key of the sealed id, which administrators can read again. */
  key_id: string;
  sealed: Uint8Array;
  /** 1 administrator, 2 member. */
  role: number;
  max_uses: number;
  uses: number;
  expires_at: number;
}

/**
 * Maintained by triggers, in the transaction of each change of the counted rows; nothing else
 * writes it.
 */
export interface OrganizationStorageTable {
  organization_id: string;
  /** Bytes of texts and blobs, in all tables that migration 0016 names. */
  bytes: number;
}

/** A person's login. */
export interface AccountTable {
  id: string;
  name: string;
  email: string;
  created_at: number;
  updated_at: number;
  /** Set while the account is blocked. */
  blocked_at: number | null;
  /** Sort key of members. */
  name_folded: string;
  /** Folded, one line each: name and email. */
  search_text: string;
  /** The organization whose SCIM set the address; null if the operator or a sign-in provider set it. */
  scim_organization_id: string | null;
}

/** An account's membership in one organization: the `user` of the contract. */
export interface MemberTable {
  id: string;
  organization_id: string;
  account_id: string;
  /** 1 administrator, 2 member. */
  role: number;
  /** Time when the account joined, or last joined again. */
  created_at: number;
  /**
   * Set once the member was removed: its row stays, since its resources name it, but counts
   * nowhere.
   */
  left_at: number | null;
  /** Set while the member is suspended in this organization; cleared when it joins again. */
  suspended_at: number | null;
  /** Id of the person at the provider that provisions it by SCIM; null for none. */
  external_id: string | null;
}

/** An issued secret; the value itself is never stored. */
export interface TokenTable {
  id: string;
  organization_id: string;
  /**
   * Kind of the token: `exchange` opens the registration of a runner, `link` signs a person in once,
   * `session` is the cookie of a person who is signed in, and `machine` a short token of a service account, in
   * exchange for one of an issuer that it trusts; the others open the API as the principal that they name.
   */
  kind:
    | "personal"
    | "service_account"
    | "runner"
    | "environment"
    | "exchange"
    | "session"
    | "link"
    | "machine";
  /** Id of the member, service account, runner or environment that it acts for. */
  subject_id: string;
  /**
   * SHA-256 of the value, or its HMAC-SHA256 under the key `hmac_key_id` until its first use after
   * that release.
   */
  hash: Uint8Array;
  hmac_key_id: string | null;
  read_only: number;
  expires_at: number;
  /** Separate from the body, since every use changes it. */
  last_used_at: number | null;
  /**
   * PersonalAccessToken, ServiceAccountToken or Session. Of a machine's token, which trust gave it and for whom. Of an environment's token for an agent execution,
   * the execution's id as `agentExecutionId`. Otherwise an empty object.
   */
  body: string;
  /**
   * Id of the account that created it; blocking that account disables it. Of an environment's token
   * for an agent execution, the account that the execution runs for. Null for tokens of the
   * operator, runners, and other tokens of environments.
   */
  creator_account_id: string | null;
  /** Set when it was permanently disabled; it is then treated like an unknown one. */
  disabled_at: number | null;
  /** Set when its end was announced, and from the start for a token with a lifetime shorter than the notice. */
  warned_at: number | null;
  /**
   * Of a session that began with a token, the id of that, and of a machine's token that of the trust which gave it, with
   * which it is removed; otherwise null.
   */
  parent_id: string | null;
  /** Of a session that began at a sign-in provider, the identity there; otherwise null. */
  identity_id: string | null;
  /** Of such a session, the id of the provider's own session, where the provider gave one. */
  provider_session_id: string | null;
}

/** The identity of an account at a sign-in provider. */
export interface ProviderIdentityTable {
  id: string;
  account_id: string;
  issuer: string;
  /** The id at the issuer; both together are the identity. */
  subject: string;
  /** The mail address that the provider last gave; empty if it gave none. */
  email: string;
  /** 1 if the provider states that it has verified the address. */
  email_verified: number;
  created_at: number;
}

/** A device that requests a token, until it gets one, its code expires, or the request is denied. */
export interface DeviceLoginTable {
  id: string;
  /** SHA-256 of the code with which the device polls. */
  device_hash: Uint8Array;
  /** HMAC-SHA256 of the code that a person types, which is too short for a hash without a key. */
  user_mac: Uint8Array;
  /** The name that the device gives itself. */
  machine: string;
  /** The address from which it made the request, and the network of that address, by which open logins are limited. */
  address: string;
  network: string;
  created_at: number;
  expires_at: number;
  /** The minimum time between two polls. */
  interval_ms: number;
  /** Time of its last poll; null before the first. */
  polled_at: number | null;
  /** The member that has decided; both null before that. */
  organization_id: string | null;
  user_id: string | null;
  /** 1 when that member has denied it. */
  denied: number;
}

/** Counts of wrong codes typed by a person or from a network, in a time that begins with the first. */
export interface SignInAttemptTable {
  /** `account` or `network`, followed by its identifier. */
  key: string;
  since: number;
  count: number;
}

export interface ServiceAccountTable {
  id: string;
  organization_id: string;
  creator_account_id: string | null;
  valid_until: number;
  suspended: number;
  /** Folded name and id, one per line. */
  search_text: string;
  body: string;
}

/** The trust of a service account in an issuer's tokens. */
export interface ServiceAccountTrustTable {
  id: string;
  organization_id: string;
  service_account_id: string;
  creator_account_id: string | null;
  /** ServiceAccountTrust. */
  body: string;
}

/** An exchanged token of an issuer, stored until it expires: it can be used once. */
export interface MachineTokenUseTable {
  /** SHA-256 of the issuer and the token's id there. */
  hash: Uint8Array;
  expires_at: number;
}

/** A group of members and service accounts. */
export interface MemberGroupTable {
  id: string;
  organization_id: string;
  /** Folded name, unique in the organization. */
  name_folded: string;
  /** The identity provider that created and maintains it; null for one that people created. */
  provider: string | null;
  /** Id of the group at the provider that provisions it by SCIM; null for none. */
  external_id: string | null;
  /** Number of its memberships, changed with them. */
  member_count: number;
  /** Folded name and id, one per line. */
  search_text: string;
  /** Group, without the number of members. */
  body: string;
}

export interface GroupMembershipTable {
  id: string;
  organization_id: string;
  group_id: string;
  /** Id of a member or service account. */
  subject_id: string;
  /** Principal by number. */
  subject_principal: number;
  /** The identity provider whose claims granted it, and which revokes it; null for none. */
  provider: string | null;
}

/** The rights of a group's members on one resource. */
export interface RoleAssignmentTable {
  id: string;
  organization_id: string;
  group_id: string;
  /** ResourceType of the contract by number. */
  resource_type: number;
  resource_id: string;
  /** ResourceRole by number: each includes those below it. */
  role: number;
  /** The subject that shared the resource. */
  creator_id: string;
  creator_principal: number;
  created_at: number;
  updated_at: number;
}

/** A subscription of an account; only the operator adds one. */
export interface SubscriptionTable {
  id: string;
  account_id: string;
  name: string;
  created_at: number;
  cancelled_at: number | null;
}

/** The response to the first block of an account, for repeated requests. */
export interface BlockReceiptTable {
  account_id: string;
  blocked_at: number;
  /** BlockAccountResponse. */
  body: string;
}

/** Rows of event subscriptions and their ledgers; ../../schema.ts combines them and explains how to read them. */

export interface EventSubscriptionTable {
  id: string;
  organization_id: string;
  /** EventSubscriptionState by number. */
  state: number;
  /** Number in the organization's record up to which events were added to the ledger or skipped. */
  sequence: number;
  /** The time before which nothing is sent, not even new events; 0 for no delay. */
  due_at: number;
  /** Time of the first failure since the last success; null when there is none. */
  failing_since: number | null;
  /** The key of all three sealed values. */
  key_id: string;
  sealed_url: Uint8Array;
  sealed_secret: Uint8Array;
  /** The previous secret, with which deliveries are signed, too, before `former_until`. */
  sealed_former: Uint8Array | null;
  former_until: number | null;
  /** EventSubscription, without failingSince and sequence. */
  body: string;
}

export interface EventDeliveryTable {
  /** Ascending in the order of the events of a subscription. */
  id: string;
  organization_id: string;
  subscription_id: string;
  /** Time at which it was entered. */
  at: number;
  /** EventDeliveryState by number. */
  state: number;
  /** Earliest time of the next attempt; null when none is due. */
  next_at: number | null;
  /** EventDelivery. */
  body: string;
}

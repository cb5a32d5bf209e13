import type { Subject } from "#gen/service/v1/identity_pb.js";

/** The role of a caller, which determines its permissions; see permissions.ts. */
export type Role = "administrator" | "member" | "service_account" | "runner" | "environment" | "exchange";

/** The authenticated sender of a request. It is also the scope of what the request can see. */
export interface Caller {
  readonly organizationId: string;
  /** The principal that acts; stored as creator of what it creates. */
  readonly subject: Subject;
  readonly role: Role;
  /**
   * The accountable account: a user's own, or that of an environment's creator. Empty for service
   * accounts and runners.
   */
  readonly accountId: string;
  /** Id of the request's token, never its value. */
  readonly tokenId: string;
  /** True for a token that may call only operations without side effects. */
  readonly readOnly: boolean;
  /** End of the request's token, in milliseconds since 1970 UTC; absent where nobody is warned of it. */
  readonly tokenEndsAt?: number;
}

import type { Subject } from "#gen/service/v1/identity_pb.js";

/** What a caller may do follows from its role; see domain/permissions.ts. */
export type Role = "administrator" | "member" | "service_account" | "runner" | "environment" | "exchange";

/** Who makes a request, as the gate found it. It is also the scope of what the request can see. */
export interface Caller {
  readonly organizationId: string;
  /** The principal that acts; written as creator on what it makes. */
  readonly subject: Subject;
  readonly role: Role;
  /**
   * The account that is answerable: a user's own, that of an environment's
   * creator. Empty for service accounts and runners.
   */
  readonly accountId: string;
  /** Id of the token that the request carried, never its value. */
  readonly tokenId: string;
  /** True for a token that may call only operations without side effects. */
  readonly readOnly: boolean;
}

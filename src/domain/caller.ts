import type { Subject } from "#gen/service/v1/identity_pb.js";

/** Who makes a request, as the gate found it. It is also the scope of what the request can see. */
export interface Caller {
  readonly organizationId: string;
  /** The principal that acts; written as creator on what it makes. */
  readonly subject: Subject;
  readonly accountId: string;
  /** Id of the token that the request carried, never its value. */
  readonly tokenId: string;
  /** True for a token that may call only operations without side effects. */
  readonly readOnly: boolean;
}

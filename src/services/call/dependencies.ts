import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { PageTokens } from "../../domain/page.ts";
import type { Keys } from "../../keys.ts";
import type { Store } from "../../store/store.ts";
import type { AccountSignals } from "./account-signals.ts";

/** What the service classes are built from. */
export interface ServiceDependencies {
  readonly store: Store;
  readonly keys: Keys;
  readonly pageTokens: PageTokens;
  /**
   * Holds a message against the rules of the contract.
   *
   * @throws DomainError CONSTRAINT_VIOLATED
   */
  readonly check: <D extends DescMessage>(schema: D, message: MessageShape<D>) => void;
  /** URL under which clients reach the server, without a slash at its end; known once it listens. */
  readonly baseUrl: () => string;
  /** Milliseconds since 1970 UTC; for reads, since a write has an instant of its own. */
  readonly now: () => number;
  /** Whether users may create organizations; otherwise only the operator does. */
  readonly allowOrganizationCreation: boolean;
  /** Pages of lists end here before they are full; one element is always on them. */
  readonly pageBytes: number;
  /** Counts stop here; past it they say GREATER_THAN_OR_EQUAL. */
  readonly countLimit: number;
  /** The open streams, to end those of callers that are cut off. */
  readonly accountSignals: AccountSignals;
}

import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { TrustableIssuer } from "../../domain/identity/machine/service-account-trust.ts";
import type { PageTokens } from "../../domain/page.ts";
import type { Retention } from "../../domain/retention-bounds.ts";
import type { ServerHealth } from "../../domain/server-health.ts";
import type { Keys } from "../../keys.ts";
import type { Scope, Store } from "../../store/store.ts";
import type { RevocationMonitor } from "./revocation-monitor.ts";

/** The dependencies of the service classes. */
export interface ServiceDependencies {
  readonly store: Store;
  readonly keys: Keys;
  readonly pageTokens: PageTokens;
  /**
   * Checks a message against the rules of the contract.
   *
   * @throws DomainError CONSTRAINT_VIOLATED
   */
  readonly check: <D extends DescMessage>(schema: D, message: MessageShape<D>) => void;
  /** URL under which clients reach the server, without a trailing slash; known once the server listens. */
  readonly baseUrl: () => string;
  /** Milliseconds since 1970 UTC. Only for reads: a write has its own timestamp. */
  readonly now: () => number;
  /** True when users may create organizations; when false, only the operator may. */
  readonly allowOrganizationCreation: boolean;
  /** Returns the issuers that service accounts may trust, from the last reading of the settings file. */
  readonly machineIssuers: () => readonly TrustableIssuer[];
  /** Retention when no policy sets it. */
  readonly retention: Retention;
  /** Returns the health of the server, with the figures of an organization. */
  readonly serverHealth: (scope: Scope) => Promise<ServerHealth>;
  /** Maximum size of a page of a list in bytes; a page always has at least one element. */
  readonly pageBytes: number;
  /** Maximum that counts go up to; larger ones are returned as GREATER_THAN_OR_EQUAL. */
  readonly countLimit: number;
  /** The monitor that ends the streams of callers whose access is revoked. */
  readonly revocationMonitor: RevocationMonitor;
}

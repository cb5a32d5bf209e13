import type { Work } from "#gen/runner/v1/work_pb.js";
import type { FinishWorkRequest, ReportProgressRequest } from "#gen/runner/v1/work_service_pb.js";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import type { SourceKind } from "../../domain/source/source-trust.ts";
import type { StoredWork } from "../../store/runner/work.ts";
import type { Lease } from "../../store/runner/work-lease.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";

/** Work as it is about to be given out. */
export interface OfferedWork {
  readonly work: StoredWork;
  readonly runnerId: string;
  /** Number of the attempt that begins, from 1. */
  readonly attempt: number;
}

/** What a runner is told of its work besides the lease. */
export interface GivenWork {
  readonly work: Work["work"];
  /** The environment that processes of the work may act as. */
  readonly environment?: Environment;
  /** Id of the security policy that holds in it; empty for none. */
  readonly securityPolicyId: string;
  /** Whether it is one agent run of several in the environment, whose processes keep the tokens that they have. */
  readonly sharesEnvironment?: boolean;
}

/** What a piece of work may touch at source-control hosts, and as whom. */
export interface CredentialUse {
  readonly subject: Subject;
  /** Remotes and page addresses that the work begins from. */
  readonly addresses: readonly string[];
  /** Who set them, as they were when the work was given out: what the runner clones is what this decides. */
  readonly sourceSetBy: readonly Subject[];
  /** Where what they set may come from. */
  readonly sourceKinds: readonly SourceKind[];
  /** Who made the workflow or project that names the subject; left out where that acts by itself. */
  readonly namedBy?: Subject | undefined;
}

/** How a lease ended; `lost` means that another attempt is due. */
export type LeaseEnd =
  | { readonly kind: "finished"; readonly outcome: FinishWorkRequest }
  | { readonly kind: "lost" };

/** Returns what is particular to a kind of work, as rows have it. It is handed in: the kinds belong to later areas. */
export type FindHandler = (kind: number) => WorkHandler;

/** What is particular to one kind of work. Each function acts in the transaction of its operation. */
export interface WorkHandler {
  /**
   * Makes ready what is given out. Work that cannot be given out now is put off
   * or taken out of the queue, and undefined returned.
   */
  begin(tx: WriteTransaction, scope: Scope, offered: OfferedWork): Promise<GivenWork | undefined>;
  /**
   * Takes a report.
   *
   * @returns whether the work itself says that the runner is to stop
   */
  report(
    tx: WriteTransaction,
    scope: Scope,
    lease: Lease,
    req: ReportProgressRequest,
  ): Promise<{ readonly stop: boolean }>;
  /** Ends the lease: the work leaves the queue, or goes back to it. */
  end(tx: WriteTransaction, scope: Scope, lease: StoredWork, end: LeaseEnd): Promise<void>;
  /** What credentials the work may ask for. */
  credentialUse(tx: WriteTransaction, scope: Scope, lease: Lease): Promise<CredentialUse>;
}

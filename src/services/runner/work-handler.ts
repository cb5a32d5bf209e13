import type { Work } from "#gen/runner/v1/work_pb.js";
import type {
  FinishWorkRequest,
  FinishWorkRequest_Outcome,
  ReportProgressRequest,
} from "#gen/runner/v1/work_service_pb.js";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import type { Policies } from "../../domain/policy/policies.ts";
import type { SourceKind } from "../../domain/source/source-trust.ts";
import type { StoredWork } from "../../store/runner/work.ts";
import type { LeasedSubject, StoredLease } from "../../store/runner/work-lease.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";

/** Work that is about to be leased. `Ahead` is what its handler has read of it before. */
export interface OfferedWork<Ahead = unknown> {
  readonly work: StoredWork;
  readonly runnerId: string;
  /** Number of the attempt, from 1. */
  readonly attempt: number;
  /** Those of the organization. */
  readonly policies: Policies;
  /** True if the runner takes agents that are defined by the API. */
  readonly apiAgents: boolean;
  /** What {@link WorkHandler.readAhead} has read of it; left out where it has not. */
  readonly ahead?: Ahead | undefined;
}

/** The content of a lease. */
export interface WorkAssignment {
  readonly work: Work["work"];
  /** Environment as which processes of the work may act. */
  readonly environment?: Environment;
  /** True for an environment that was created for this lease, so that nothing can act as it yet. */
  readonly isNewEnvironment?: boolean;
  /** Id of the environment's security policy; empty for none. */
  readonly securityPolicyId: string;
  /** True for one of several agent executions in the environment; the tokens of the others remain valid. */
  readonly sharesEnvironment?: boolean;
  /** The subject and kind of the work from this lease on; left out when they do not change. */
  readonly leasedAs?: LeasedSubject;
  /** Time since when an agent execution could give its slot back; left out for other work. */
  readonly idleSince?: number;
}

/** The access of a piece of work to source-control hosts. */
export interface CredentialUse {
  readonly subject: Subject;
  /** URLs of repositories and pages from which the work begins. */
  readonly addresses: readonly string[];
  /** Subjects that set them, as of the start of the lease: they decide what the runner clones. */
  readonly sourceSetBy: readonly Subject[];
  /** Possible origins of the addresses. */
  readonly sourceKinds: readonly SourceKind[];
  /** Creator of the workflow or project that names the subject; left out when the subject acts by itself. */
  readonly namedBy?: Subject | undefined;
}

/** A report on the progress of work. */
export interface WorkProgress extends ReportProgressRequest {
  /** The earliest time that a move in it may have, in milliseconds since 1970 UTC. */
  readonly since: number;
  /** The outcome with which the same write ends the lease after it; left out when the lease goes on. */
  readonly endsAs?: FinishWorkRequest_Outcome | undefined;
}

/** The end of a lease; `lost` means that another attempt is due. */
export type LeaseEnd =
  | { readonly kind: "finished"; readonly outcome: FinishWorkRequest }
  | { readonly kind: "lost" };

/** Why work waits for another runner than those that are connected. */
export interface RunnerWait {
  readonly message: string;
  /** The policies that its runner must keep, by their names. */
  readonly policies: readonly string[];
}

/** A function that returns the handler of a kind of work, by its number in rows. It is injected, since the handlers belong to later areas. */
export type FindHandler = (kind: number) => WorkHandler;

/**
 * The handler of one kind of work. Each function runs in the transaction of its operation. `Reported` is what an end in
 * the transaction of a report need not read again, `Ahead` what the beginning of an attempt need not.
 */
export interface WorkHandler<Reported = unknown, Ahead = unknown> {
  /**
   * Reads what several pieces of work begin with, at once, before the first of them begins; absent where each reads for
   * itself. Nothing but their beginnings changes anything until the last has begun. What cannot be read fails only the
   * beginning of what needs it.
   *
   * @returns what was read, in the order of the works
   */
  readAhead?(tx: WriteTransaction, scope: Scope, works: readonly StoredWork[]): Promise<readonly Ahead[]>;
  /**
   * Begins an attempt and returns the content of the lease. Work that cannot be
   * leased now is postponed or removed from the queue; the result is undefined then.
   */
  begin(tx: WriteTransaction, scope: Scope, offered: OfferedWork<Ahead>): Promise<WorkAssignment | undefined>;
  /**
   * Applies a progress report.
   *
   * @returns whether the state of the work requires that the runner stops
   */
  report(
    tx: WriteTransaction,
    scope: Scope,
    lease: StoredLease,
    req: WorkProgress,
  ): Promise<{ readonly stop: boolean; readonly reported?: Reported }>;
  /**
   * Ends the lease: the work leaves the queue, or goes back to it.
   *
   * @param reported of a report in the same transaction, if any
   */
  end(
    tx: WriteTransaction,
    scope: Scope,
    lease: StoredWork,
    end: LeaseEnd,
    reported?: Reported,
  ): Promise<void>;
  /** Shows people that work which nobody holds waits for a runner; absent for work that needs none in particular. */
  warn?(tx: WriteTransaction, scope: Scope, work: StoredWork, wait: RunnerWait): Promise<void>;
  /** Returns the access of the work to source-control hosts. */
  credentialUse(tx: WriteTransaction, scope: Scope, lease: StoredLease): Promise<CredentialUse>;
}

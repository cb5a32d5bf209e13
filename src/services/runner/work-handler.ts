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

/** Work that is about to be leased. `Ahead` is the type of what its handler read in advance. */
export interface WorkToLease<Ahead = unknown> {
  readonly work: StoredWork;
  readonly runnerId: string;
  /** Number of the attempt, from 1. */
  readonly attempt: number;
  /** The policies of the organization. */
  readonly policies: Policies;
  /** True when the runner takes agents that the API defines. */
  readonly apiAgents: boolean;
  /** What {@link WorkHandler.readAhead} read for this work; absent when it read nothing. */
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
  /** The subject and kind of the work from this lease on; absent when they do not change. */
  readonly leasedAs?: LeasedSubject;
  /** Time since which an agent execution could give back its slot; absent for other work. */
  readonly idleSince?: number;
}

/** What a piece of work may access at source-control hosts. */
export interface CredentialUse {
  readonly subject: Subject;
  /** URLs of repositories and pages that the work starts from. */
  readonly addresses: readonly string[];
  /** Subjects that set the addresses, as of the start of the lease: they decide what the runner clones. */
  readonly sourceSetBy: readonly Subject[];
  /** Possible origins of the addresses. */
  readonly sourceKinds: readonly SourceKind[];
  /** Creator of the workflow or project that names the subject; absent when the subject acts by itself. */
  readonly namedBy?: Subject | undefined;
}

/** A report on the progress of work. */
export interface WorkProgress extends ReportProgressRequest {
  /** The earliest time that a transition in the report may have, in milliseconds since 1970 UTC. */
  readonly since: number;
  /** The outcome with which the same write then ends the lease; absent when the lease continues. */
  readonly endsAs?: FinishWorkRequest_Outcome | undefined;
}

/** The end of a lease; `lost` means that another attempt is due. */
export type LeaseEnd =
  | { readonly kind: "finished"; readonly outcome: FinishWorkRequest }
  | { readonly kind: "lost" };

/** Why work waits although other runners are connected. */
export interface RunnerWait {
  readonly message: string;
  /** Names of the policies that its runner must support. */
  readonly policies: readonly string[];
}

/** Returns the handler of a kind of work, by its number in rows. Injected, because later areas own the handlers. */
export type FindHandler = (kind: number) => WorkHandler;

/**
 * Handles one kind of work. Each function runs in the transaction of its operation. `Reported` passes what a report
 * read to an end in the same transaction; `Ahead` passes what was read in advance to the beginning of an attempt.
 */
export interface WorkHandler<Reported = unknown, Ahead = unknown> {
  /**
   * Reads in one go what several pieces of work need to begin, before the first begins; absent when each reads for
   * itself. Until the last has begun, only their own beginnings change anything. When something cannot be read, only
   * the work that needs it fails to begin.
   *
   * @returns what was read, in the order of the works
   */
  readAhead?(tx: WriteTransaction, scope: Scope, works: readonly StoredWork[]): Promise<readonly Ahead[]>;
  /**
   * Begins an attempt and returns the content of the lease, or undefined for work that cannot be leased now: it is
   * postponed or removed from the queue.
   */
  begin(tx: WriteTransaction, scope: Scope, offered: WorkToLease<Ahead>): Promise<WorkAssignment | undefined>;
  /**
   * Applies a progress report.
   *
   * @returns whether the runner must stop
   */
  report(
    tx: WriteTransaction,
    scope: Scope,
    lease: StoredLease,
    req: WorkProgress,
  ): Promise<{ readonly stop: boolean; readonly reported?: Reported }>;
  /**
   * Ends the lease: the work leaves the queue or returns to it.
   *
   * @param reported the result of a report in the same transaction, if there was one
   */
  end(
    tx: WriteTransaction,
    scope: Scope,
    lease: StoredWork,
    end: LeaseEnd,
    reported?: Reported,
  ): Promise<void>;
  /** Shows people that unleased work waits for a runner; absent for work that needs no particular runner. */
  warn?(tx: WriteTransaction, scope: Scope, work: StoredWork, wait: RunnerWait): Promise<void>;
  /** Returns the access of the work to source-control hosts. */
  credentialUse(tx: WriteTransaction, scope: Scope, lease: StoredLease): Promise<CredentialUse>;
}

import type { EventSender } from "../domain/access/event-subscription/delivery-outcome.ts";
import type { AuditSink } from "../domain/record/audit-export.ts";
import type { Keys } from "../keys.ts";
import type { Log } from "../log.ts";
import type { SourceControl } from "../scm/source-control.ts";
import type { RevocationMonitor } from "../services/call/revocation-monitor.ts";
import type { Store } from "../store/store.ts";
import type { RetentionSettings } from "./retention/retention.ts";

/** Recurring work without a request. */
export interface Job {
  readonly name: string;
  /** Milliseconds from one start to the next. */
  readonly everyMs: number;
  /** True for a job that every server runs for itself; others run on one server at a time. Default false. */
  readonly isLocal?: boolean;
  readonly run: () => Promise<unknown>;
}

/** The dependencies of jobs. */
export interface JobContext {
  readonly store: Store;
  readonly keys: Keys;
  readonly log: Log;
  readonly scm: SourceControl;
  readonly revocationMonitor: RevocationMonitor;
  /** The responses that wait for their readers. */
  readonly output: {
    /** Advances the clock of the waits by `elapsedMs` and disconnects readers that are too slow. */
    pass(elapsedMs: number): void;
  };
  /** The disk and the key file of this server. */
  readonly machine: {
    /** Checks them. Never rejects. */
    check(): Promise<void>;
    /** Returns the problems that the last check found. */
    problems(): readonly { readonly check: string; readonly reason: string }[];
  };
  /** The targets to which the audit trail is exported. */
  readonly auditSinks: readonly AuditSink[];
  /** Sends events to the subscriptions of organizations. */
  readonly eventSender: EventSender;
  /** URL under which people reach the console, without a trailing slash. */
  readonly baseUrl: () => string;
  /** The limits of calls. */
  readonly limits: {
    /** Reports the calls that this server has allowed to the other servers. */
    exchange(): void;
  };
  /** Milliseconds since 1970 UTC. */
  readonly now: () => number;
  /** Aborted when the server begins to shut down. */
  readonly draining: AbortSignal;
  readonly settings: RetentionSettings & {
    /** Seconds between two refreshes of the popularity of projects. */
    readonly popularityInterval: number;
    /** Days for which the audit trail is kept; 0 for unlimited. */
    readonly auditRetention: number;
    /** Seconds between two removals of deleted projects and expired tokens. */
    readonly removalInterval: number;
    /** Seconds that an agent waiting for input keeps its runner's slot; 0 for unlimited. */
    readonly agentSlotTime: number;
    /** Seconds that work waits for a runner that supports the policies it needs. */
    readonly runnerWait: number;
  };
}

/** A function that creates a job. */
export type JobFactory = (context: JobContext) => Job;

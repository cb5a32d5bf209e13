import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { CallOptions } from "@connectrpc/connect";
import type { Work } from "#gen/runner/v1/work_pb.js";
import type {
  FailureSchema,
  FinishWorkRequest_Outcome,
  GetHostCredentialResponse,
  ReportProgressRequest_EnvironmentProgressSchema,
  ReportProgressRequest_LogChunkSchema,
  ReportProgressRequest_StepProgressSchema,
} from "#gen/runner/v1/work_service_pb.js";
import { backOffMs, pause } from "./back-off.ts";
import { connectionProblemOf, isNotFound, type WorkClient, withheldReason } from "./connection.ts";

/**
 * Why work ends before its end.
 *
 * - `stop`: the service says so.
 * - `drain`: the runner shuts down; another one is to do the work.
 * - `lost`: the work is another's, or nobody's; nothing may be told of it any more.
 */
export type Interruption = "stop" | "drain" | "lost";

/** The reason of a lease's signal. */
export class WorkInterrupted extends Error {
  override readonly name = "WorkInterrupted";
  readonly interruption: Interruption;

  constructor(interruption: Interruption) {
    super(`the work was interrupted: ${interruption}`);
    this.interruption = interruption;
  }
}

/** What has happened since the last report. */
export interface Progress {
  readonly environment?: MessageInitShape<typeof ReportProgressRequest_EnvironmentProgressSchema>;
  readonly steps?: MessageInitShape<typeof ReportProgressRequest_StepProgressSchema>[];
  readonly logs?: MessageInitShape<typeof ReportProgressRequest_LogChunkSchema>[];
}

/** How work ended. */
export interface WorkEnd {
  readonly outcome: FinishWorkRequest_Outcome;
  readonly failure?: MessageInitShape<typeof FailureSchema>;
  readonly warnings?: MessageInitShape<typeof FailureSchema>[];
}

/** How the service is told which lease a call is about. */
export type LeaseName = Pick<Work, "leaseId" | "fence">;

/** One call; it is made again while the lease holds. */
const CALL_MS = 10_000;
/** A stream is opened anew after this: a connection that died in silence goes unnoticed so long at most. */
const STREAM_MS = 120_000;
/** A lease is renewed at a third of its time, and at least this often: so long a stop may go unheard. */
const RENEWAL_MS = 5_000;
/** Where the clocks of server and runner differ, a lease may seem to end before it began. */
const SHORTEST_MS = 1_000;

/**
 * The hold on one piece of work: kept by renewing it until the work is finished,
 * or until it is lost. Every call is repeated while the server is away, as long
 * as the lease holds.
 */
export class Lease {
  readonly #client: WorkClient;
  readonly #name: LeaseName;
  readonly #interrupted = new AbortController();
  /** Aborted when the lease is finished or lost: no call is made any more. */
  readonly #over = new AbortController();
  /** On the clock of performance.now(). */
  #holdsUntil = 0;

  constructor(
    client: WorkClient,
    { leaseId, fence, expiresAt }: Pick<Work, "leaseId" | "fence" | "expiresAt">,
  ) {
    this.#client = client;
    this.#name = { leaseId, fence };
    this.#hold(expiresAt);
    void this.#keep();
  }

  /** Aborted with a WorkInterrupted when the work is to end now. */
  get signal(): AbortSignal {
    return this.#interrupted.signal;
  }

  /** Ends the work; of several causes the first one counts, unless the lease is lost. */
  interrupt(interruption: Interruption): void {
    this.#interrupted.abort(new WorkInterrupted(interruption));
    if (interruption === "lost") this.#over.abort(new WorkInterrupted(interruption));
  }

  /** Whether another one may have the work by now. */
  get isLost(): boolean {
    return this.#over.signal.reason instanceof WorkInterrupted;
  }

  /**
   * Tells the service what has happened; it may answer that the work is to stop.
   *
   * @throws WorkInterrupted when the lease is lost
   * @throws ConnectError when the service refuses the report
   */
  async report(progress: Progress): Promise<void> {
    this.heard(
      await this.ask((client, name, options) => client.reportProgress({ ...progress, ...name }, options)),
    );
  }

  /** Takes note of what an answer says of the lease. */
  heard({ expiresAt, stop }: { readonly expiresAt?: Timestamp | undefined; readonly stop: boolean }): void {
    this.#hold(expiresAt);
    if (stop) this.interrupt("stop");
  }

  /**
   * Gives the work back. The lease is over then, whatever comes of it.
   *
   * @throws WorkInterrupted when the lease was lost before
   * @throws ConnectError when the service refuses the end
   */
  async finish(end: WorkEnd): Promise<void> {
    try {
      await this.ask((client, name, options) => client.finishWork({ ...end, ...name }, options));
    } finally {
      this.#over.abort();
    }
  }

  /**
   * Returns the credential that the work's executor has for a host, or why it is
   * withheld, to be read by people; undefined without one.
   *
   * @throws as {@link report}
   */
  async credential(
    host: string,
  ): Promise<GetHostCredentialResponse | { readonly withheld: string } | undefined> {
    try {
      return await this.ask((client, name, options) => client.getHostCredential({ ...name, host }, options));
    } catch (error) {
      if (isNotFound(error)) return undefined;
      const withheld = withheldReason(error);
      if (withheld === undefined) throw error;
      return { withheld };
    }
  }

  /**
   * Makes any call of the lease's holder, again and again while the server is
   * away and the lease holds.
   *
   * @throws as {@link report}
   */
  async ask<T>(call: (client: WorkClient, name: LeaseName, options: CallOptions) => Promise<T>): Promise<T> {
    const over = this.#over.signal;
    for (let failures = 1; ; failures++) {
      over.throwIfAborted();
      try {
        return await call(this.#client, this.#name, { signal: over, timeoutMs: CALL_MS });
      } catch (error) {
        over.throwIfAborted();
        const trouble = connectionProblemOf(error);
        if (trouble === "refused") throw error;
        if (trouble !== "passing" || performance.now() >= this.#holdsUntil) this.interrupt("lost");
        await pause(Math.min(backOffMs(failures), this.#holdsUntil - performance.now()), over);
      }
    }
  }

  /**
   * Reads a stream of the lease's holder, and opens it again whenever it breaks
   * off. It ends with the lease, and when `signal` is aborted.
   *
   * @throws ConnectError when the service refuses it
   */
  async *follow<T>(
    open: (client: WorkClient, name: LeaseName, options: CallOptions) => AsyncIterable<T>,
    signal: AbortSignal,
  ): AsyncGenerator<T, void> {
    const end = AbortSignal.any([signal, this.#over.signal]);
    for (let failures = 1; !end.aborted; failures++) {
      try {
        for await (const message of open(this.#client, this.#name, { signal: end, timeoutMs: STREAM_MS })) {
          failures = 0;
          yield message;
        }
        // The work may be to stop.
        await this.#renew();
      } catch (error) {
        if (end.aborted) return;
        const trouble = connectionProblemOf(error);
        if (trouble === "refused") throw error;
        if (trouble !== "passing") return this.interrupt("lost");
      }
      await pause(Math.min(backOffMs(Math.max(1, failures)), RENEWAL_MS), end);
    }
  }

  async #renew(): Promise<void> {
    this.heard(await this.ask((client, name, options) => client.renewLease(name, options)));
  }

  #hold(expiresAt: Timestamp | undefined): void {
    const leftMs = expiresAt ? timestampMs(expiresAt) - Date.now() : 0;
    this.#holdsUntil = performance.now() + Math.max(leftMs, SHORTEST_MS);
  }

  async #keep(): Promise<void> {
    const over = this.#over.signal;
    for (;;) {
      const leftMs = this.#holdsUntil - performance.now();
      await pause(Math.min(leftMs / 3, RENEWAL_MS), over);
      if (over.aborted) return;
      try {
        await this.#renew();
      } catch {
        if (!over.aborted) this.interrupt("lost");
      }
    }
  }
}

import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { CallOptions } from "@connectrpc/connect";
import type { ReportAgentRequestSchema, ReportAgentResponse } from "#gen/runner/v1/agent_work_service_pb.js";
import type { Work } from "#gen/runner/v1/work_pb.js";
import type { GetHostCredentialResponse, ReportProgressResponse } from "#gen/runner/v1/work_service_pb.js";
import { backOffMs, pause } from "./back-off.ts";
import { CALL_MS, classifyFailure, isNotFound, type WorkClient, withheldReason } from "./connection.ts";
import type { LeaseCalls } from "./lease-calls.ts";
import type { LeaseReference, Progress, ReportChannel, WaitingReport, WorkEnd } from "./work-reports.ts";

/**
 * The cause that interrupts work.
 *
 * - `stop`: the service asks for it.
 * - `rest`: the service asks for the slot of an agent that waits; it goes on in another process.
 * - `drain`: the runner shuts down; another one is to do the work.
 * - `lost`: the work belongs to another runner, or to none; nothing may be
 *   reported about it any more.
 */
export type Interruption = "stop" | "rest" | "drain" | "lost";

/** The reason of a lease's signal. */
export class WorkInterrupted extends Error {
  override readonly name = "WorkInterrupted";
  readonly interruption: Interruption;

  constructor(interruption: Interruption) {
    super(`the work was interrupted: ${interruption}`);
    this.interruption = interruption;
  }
}

/** A stream is reopened after this time: it bounds how long a silently broken connection goes unnoticed. */
const STREAM_MS = 120_000;
/**
 * A lease is renewed at a third of its time, and at least this often, which
 * bounds how late a stop is noticed.
 */
const RENEWAL_MS = 5_000;
/** The minimum: if the clocks of server and runner differ, a lease may appear to end before it began. */
const MIN_LEASE_MS = 1_000;

/**
 * The lease on one piece of work: renewed until the work is finished, or until
 * the lease is lost. Every call is repeated while the server is unreachable, as
 * long as the lease is valid. Reports are sent in their order, together with
 * those of other leases.
 */
export class Lease {
  readonly #calls: LeaseCalls;
  readonly #name: LeaseReference;
  readonly #channel: ReportChannel;
  #sending: Promise<void> | undefined;
  readonly #interrupted = new AbortController();
  /** Aborted when the lease is finished or lost: no call is made any more. */
  readonly #over = new AbortController();
  /** The end of the lease on the clock of performance.now(). */
  #validUntil = 0;

  constructor(
    calls: LeaseCalls,
    { leaseId, fence, expiresAt }: Pick<Work, "leaseId" | "fence" | "expiresAt">,
  ) {
    this.#calls = calls;
    this.#name = { leaseId, fence };
    this.#channel = { name: this.#name, waiting: [] };
    this.#extend(expiresAt);
    void this.#renewUntilOver();
  }

  /** Returns a signal that is aborted with a WorkInterrupted when the work must end now. */
  get signal(): AbortSignal {
    return this.#interrupted.signal;
  }

  /** Interrupts the work; of several causes the first one counts, unless the lease is lost. */
  interrupt(interruption: Interruption): void {
    this.#interrupted.abort(new WorkInterrupted(interruption));
    if (interruption === "lost") this.#over.abort(new WorkInterrupted(interruption));
  }

  /** Returns whether another runner may have the work by now. */
  get isLost(): boolean {
    return this.#over.signal.reason instanceof WorkInterrupted;
  }

  /**
   * Reports progress to the service, which may answer that the work must stop.
   *
   * @param mayWait true for progress that may wait for the next report, 20 ms at most
   * @throws WorkInterrupted when the lease is lost
   * @throws ConnectError when the service refuses the report
   */
  async report(progress: Progress, { mayWait = false } = {}): Promise<void> {
    const response = await this.#send({ progress, mayWait });
    if (response) this.applyResponse(response);
  }

  /**
   * Reports on the agent's execution that the lease is on.
   *
   * @returns the number of the block that the service accepted last
   * @throws as {@link report}
   */
  async reportAgent(report: MessageInitShape<typeof ReportAgentRequestSchema>): Promise<bigint> {
    const response: ReportAgentResponse = await this.#repeat(() =>
      this.#calls.agentReports.add({ ...report, ...this.#name }),
    );
    this.applyResponse(response);
    return response.lastSequence;
  }

  /** Applies a response about the lease: its new end, and a request to stop or to give the slot back. */
  applyResponse({
    expiresAt,
    stop,
    giveBack = false,
  }: {
    readonly expiresAt?: Timestamp | undefined;
    readonly stop: boolean;
    readonly giveBack?: boolean;
  }): void {
    this.#extend(expiresAt);
    if (stop) this.interrupt("stop");
    if (giveBack) this.interrupt("rest");
  }

  /**
   * Gives the work back. The lease is over once the service has taken it.
   *
   * @throws WorkInterrupted when the lease was lost before
   * @throws ConnectError when the service refuses the end: another one may be given
   */
  async finish(end: WorkEnd): Promise<void> {
    await this.#send({ end, mayWait: false });
    this.#over.abort();
  }

  /** Ends the renewals of a lease that is given up: the service notices when it expires. */
  giveUp(): void {
    this.#over.abort();
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
      return await this.call((client, name, options) => client.getHostCredential({ ...name, host }, options));
    } catch (error) {
      if (isNotFound(error)) return undefined;
      const withheld = withheldReason(error);
      if (withheld === undefined) throw error;
      return { withheld };
    }
  }

  /**
   * Makes a call of the lease's holder, and repeats it while the server is
   * unreachable and the lease is valid.
   *
   * @throws as {@link report}
   */
  call<T>(call: (client: WorkClient, name: LeaseReference, options: CallOptions) => Promise<T>): Promise<T> {
    const options = { signal: this.#over.signal, timeoutMs: CALL_MS };
    return this.#repeat(() => call(this.#calls.client, this.#name, options));
  }

  async #repeat<T>(call: () => Promise<T>): Promise<T> {
    const over = this.#over.signal;
    for (let failures = 1; ; failures++) {
      over.throwIfAborted();
      try {
        return await call();
      } catch (error) {
        over.throwIfAborted();
        const failure = classifyFailure(error);
        if (failure === "refused") throw error;
        if (failure !== "transient" || performance.now() >= this.#validUntil) this.interrupt("lost");
        await pause(Math.min(backOffMs(failures), this.#validUntil - performance.now()), over);
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
    open: (client: WorkClient, name: LeaseReference, options: CallOptions) => AsyncIterable<T>,
    signal: AbortSignal,
  ): AsyncGenerator<T, void> {
    const end = AbortSignal.any([signal, this.#over.signal]);
    for (let failures = 1; !end.aborted; failures++) {
      try {
        for await (const message of open(this.#calls.client, this.#name, {
          signal: end,
          timeoutMs: STREAM_MS,
        })) {
          failures = 0;
          yield message;
        }
        // The response may ask the work to stop.
        await this.#renew();
      } catch (error) {
        if (end.aborted) return;
        const failure = classifyFailure(error);
        if (failure === "refused") throw error;
        if (failure !== "transient") return this.interrupt("lost");
      }
      await pause(Math.min(backOffMs(Math.max(1, failures)), RENEWAL_MS), end);
    }
  }

  #send(
    report: Pick<WaitingReport, "progress" | "end" | "mayWait">,
  ): Promise<ReportProgressResponse | undefined> {
    return new Promise((resolve, reject) => {
      this.#channel.waiting.push({ ...report, at: performance.now(), resolve, reject });
      this.#sending ??= this.#sendWaiting();
      if (!report.mayWait) this.#calls.reports.hurry();
    });
  }

  async #sendWaiting(): Promise<void> {
    const { waiting } = this.#channel;
    try {
      while (waiting.length > 0) {
        await this.#repeat(() => {
          const mayWait = waiting.every((report) => report.mayWait);
          return this.#calls.reports.add(this.#channel, { mayWait });
        });
      }
    } catch (cause) {
      for (const { reject } of waiting.splice(0)) reject(cause);
    } finally {
      this.#sending = undefined;
    }
  }

  async #renew(): Promise<void> {
    this.applyResponse(await this.#repeat(() => this.#calls.renewals.add(this.#name, { mayWait: true })));
  }

  #extend(expiresAt: Timestamp | undefined): void {
    const leftMs = expiresAt ? timestampMs(expiresAt) - Date.now() : 0;
    this.#validUntil = performance.now() + Math.max(leftMs, MIN_LEASE_MS);
  }

  async #renewUntilOver(): Promise<void> {
    const over = this.#over.signal;
    for (;;) {
      const leftMs = this.#validUntil - performance.now();
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

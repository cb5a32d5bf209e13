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
 * Why work is interrupted.
 *
 * - `stop`: the service requests it.
 * - `rest`: the service requests the slot of a waiting agent, which continues in another process later.
 * - `drain`: the runner shuts down; another runner does the work.
 * - `lost`: the work belongs to another runner, or to none; nothing more may be reported.
 */
export type Interruption = "stop" | "rest" | "drain" | "lost";

/** The abort reason of a lease's signal. */
export class WorkInterrupted extends Error {
  override readonly name = "WorkInterrupted";
  readonly interruption: Interruption;

  constructor(interruption: Interruption) {
    super(`the work was interrupted: ${interruption}`);
    this.interruption = interruption;
  }
}

/**
 * Maximum lifetime of a stream, after which it is reopened. This bounds how long a silently broken connection goes
 * unnoticed.
 */
const STREAM_MS = 120_000;
/**
 * Maximum interval between renewals, which bounds how late a stop is noticed that the runner's stream of questions does
 * not name. A lease is renewed after a third of its time if that is sooner.
 */
const RENEWAL_MS = 5_000;
/** The minimum time of a lease: with clock skew between server and runner, it may appear to end before it began. */
const MIN_LEASE_MS = 1_000;

/**
 * The lease on one piece of work, renewed until the work is finished or the lease is lost. Retries every call while
 * the server is unreachable and the lease is valid. Sends reports in order, batched with those of other leases.
 */
export class Lease {
  readonly #calls: LeaseCalls;
  readonly #name: LeaseReference;
  readonly #channel: ReportChannel;
  #sending: Promise<void> | undefined;
  readonly #interrupted = new AbortController();
  /** Aborted when the lease is finished or lost; no more calls are made. */
  readonly #over = new AbortController();
  /** When the lease expires, in the time of performance.now(). */
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

  /** Returns a signal that is aborted with a WorkInterrupted when the work must end. */
  get signal(): AbortSignal {
    return this.#interrupted.signal;
  }

  /** Interrupts the work. The first cause wins, but `lost` overrides it. */
  interrupt(interruption: Interruption): void {
    this.#interrupted.abort(new WorkInterrupted(interruption));
    if (interruption === "lost") this.#over.abort(new WorkInterrupted(interruption));
  }

  /** Returns whether another runner may have the work now. */
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
   * Reports on the leased agent execution.
   *
   * @returns the number of the last block that the service accepted
   * @throws as {@link report}
   */
  async reportAgent(report: MessageInitShape<typeof ReportAgentRequestSchema>): Promise<bigint> {
    const response: ReportAgentResponse = await this.#repeat(() =>
      this.#calls.agentReports.add({ ...report, ...this.#name }),
    );
    this.applyResponse(response);
    return response.lastSequence;
  }

  /** Applies a response about the lease: its new expiry, and a request to stop or to release the slot. */
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
   * Finishes the work. The lease ends once the service has accepted the result.
   *
   * @throws WorkInterrupted when the lease was already lost
   * @throws ConnectError when the service rejects the result; the caller may send another one
   */
  async finish(end: WorkEnd): Promise<void> {
    await this.#send({ end, mayWait: false });
    this.#over.abort();
  }

  /** Stops renewing an abandoned lease; the service notices when it expires. */
  giveUp(): void {
    this.#over.abort();
  }

  /**
   * Returns the executor's credential for a host, or why it is withheld as a message for people; undefined without
   * one.
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
   * Makes a call for the lease's holder, and retries it while the server is unreachable and the lease is valid.
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
   * Reads a stream for the lease's holder, and reopens it whenever it breaks. Ends with the lease, and when `signal`
   * is aborted.
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
        // The response may request a stop.
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

  /** Renews the lease, unless it is over; the response may say that the work must end. Never rejects. */
  async renew(): Promise<void> {
    try {
      await this.#renew();
    } catch {
      if (!this.#over.signal.aborted) this.interrupt("lost");
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
      await this.renew();
    }
  }
}

import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type EnvironmentConnectionSchema,
  EnvironmentConnection_Refusal as Refusal,
} from "#gen/service/v1/environment_connection_pb.js";
import { MAX_KEPT_CONNECTIONS } from "../../domain/environment/environment-connection.ts";
import type { Log } from "../../log.ts";
import { backOffMs, pause } from "../protocol/back-off.ts";
import { CALL_MS, classifyFailure, isUnknownOperation, type WorkClient } from "../protocol/connection.ts";
import type { EgressRefusal } from "./egress-rules.ts";
import type { EgressConnection } from "./forward-request.ts";

/** Maximum number of connections in a report (contract, ReportEnvironmentConnectionsRequest.connections). */
const MAX_REPORTED = 200;
/** Time during which reports are retried after the end of the work while the server is unreachable. */
const REPEAT_MS = 15_000;

const REFUSALS: Readonly<Record<EgressRefusal, Refusal>> = {
  not_allowed: Refusal.NOT_ALLOWED,
  address_not_public: Refusal.ADDRESS_NOT_PUBLIC,
  no_address: Refusal.NO_ADDRESS,
  begun_by_fork: Refusal.BEGUN_BY_FORK,
};

type Reported = MessageInitShape<typeof EnvironmentConnectionSchema>;

/** Reports the connections of a piece of work. The work waits for the reports only at its end. */
export class ConnectionReports {
  readonly #client: Pick<WorkClient, "reportEnvironmentConnections">;
  readonly #environmentId: string;
  readonly #log: Pick<Log, "warn">;
  readonly #signal: AbortSignal;
  /** Time after which reports are no longer retried. */
  #until = Number.POSITIVE_INFINITY;
  #pending: Reported[] = [];
  #leftOut = false;
  #sending: Promise<void> | undefined;
  readonly #counts = { refused: 0, allowed: 0 };

  /** @param signal aborted when the server no longer accepts reports of the work */
  constructor(
    client: Pick<WorkClient, "reportEnvironmentConnections">,
    environmentId: string,
    log: Pick<Log, "warn">,
    signal: AbortSignal,
  ) {
    this.#client = client;
    this.#environmentId = environmentId;
    this.#log = log;
    this.#signal = signal;
  }

  /** Reports a connection. Beyond the number that the server keeps, connections are only counted. */
  add({ host, port, rule, refusal, sentBytes, receivedBytes }: EgressConnection): void {
    const kind = refusal === undefined ? "allowed" : "refused";
    if (this.#counts[kind] >= MAX_KEPT_CONNECTIONS) {
      if (this.#counts[kind]++ === MAX_KEPT_CONNECTIONS) this.#leftOut = true;
      this.#begin();
      return;
    }
    this.#counts[kind]++;
    this.#pending.push({
      id: randomUUID(),
      host,
      port,
      rule,
      refusal: refusal === undefined ? Refusal.UNSPECIFIED : REFUSALS[refusal],
      sentBytes: BigInt(sentBytes),
      receivedBytes: BigInt(receivedBytes),
      endedAt: timestampFromMs(Date.now()),
    });
    this.#begin();
  }

  /** Resolves when all connections are reported or given up. */
  async settled(): Promise<void> {
    this.#until = performance.now() + REPEAT_MS;
    await this.#sending;
  }

  #begin(): void {
    if (this.#pending.length === 0 && !this.#leftOut) return;
    this.#sending ??= this.#send()
      .catch((error: Error) => {
        const problem = error.message;
        this.#log.warn({ environment: this.#environmentId, problem }, "connections could not be reported");
      })
      .finally(() => {
        this.#sending = undefined;
      });
  }

  async #send(): Promise<void> {
    while (this.#pending.length > 0 || this.#leftOut) {
      const connections = this.#pending.slice(0, MAX_REPORTED);
      const leftOut = this.#leftOut;
      this.#pending = this.#pending.slice(MAX_REPORTED);
      this.#leftOut = false;
      if (!(await this.#report({ environmentId: this.#environmentId, connections, leftOut }))) {
        this.#pending = [];
        this.#leftOut = false;
        return;
      }
    }
  }

  /** Sends a report with retries. Returns false when the server does not accept it. */
  async #report(report: Parameters<WorkClient["reportEnvironmentConnections"]>[0]): Promise<boolean> {
    for (let failures = 1; ; failures++) {
      try {
        await this.#client.reportEnvironmentConnections(report, {
          timeoutMs: CALL_MS,
          signal: this.#signal,
        });
        return true;
      } catch (error) {
        // An older server does not know these reports; or the environment or the token is gone, and the work finds out.
        if (isUnknownOperation(error) || this.#signal.aborted || classifyFailure(error) !== "transient")
          return false;
        if (performance.now() >= this.#until) throw error;
      }
      await pause(backOffMs(failures), this.#signal);
    }
  }
}

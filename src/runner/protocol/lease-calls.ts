import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ReportAgentRequestSchema, ReportAgentResponse } from "#gen/runner/v1/agent_work_service_pb.js";
import type { RenewLeaseResponse } from "#gen/runner/v1/work_service_pb.js";
import { CallBatcher } from "./call-batcher.ts";
import { CALL_MS, fulfilled, isBatchRefused, rejected, type WorkClient } from "./connection.ts";
import {
  type LeaseReference,
  type NextWork,
  NO_WORK,
  type ReportChannel,
  sendReports,
} from "./work-reports.ts";

type AgentReportRequest = MessageInitShape<typeof ReportAgentRequestSchema> & LeaseReference;

/** Batches the calls of one work loop's leases. */
export interface LeaseCalls {
  readonly client: WorkClient;
  readonly reports: CallBatcher<ReportChannel, void>;
  readonly renewals: CallBatcher<LeaseReference, RenewLeaseResponse>;
  readonly agentReports: CallBatcher<AgentReportRequest, ReportAgentResponse>;
}

/** The contract's maximum for entries of ReportWorks and ReportAgents. */
const MAX_REPORTS = 32;
/** The contract's maximum for entries of RenewLeases. */
const MAX_RENEWALS = 64;
/** Below the limit of 4 MiB for a call, because sizes are estimates. */
const MAX_BYTES = 3 * 1_024 * 1_024;

export function createLeaseCalls(client: WorkClient, next: NextWork = NO_WORK): LeaseCalls {
  return {
    client,
    reports: new CallBatcher({
      send: (channels) => sendReports(client, next, channels),
      sizeOf: ({ waiting }) => approximateBytes(waiting),
      maxEntries: MAX_REPORTS,
      maxBytes: MAX_BYTES,
    }),
    renewals: new CallBatcher({
      send: (leases) => renewLeases(client, leases),
      sizeOf: () => 0,
      maxEntries: MAX_RENEWALS,
      maxBytes: MAX_BYTES,
    }),
    agentReports: new CallBatcher<AgentReportRequest, ReportAgentResponse>({
      send: (reports) => reportAgents(client, reports),
      sizeOf: approximateBytes,
      maxEntries: MAX_REPORTS,
      maxBytes: MAX_BYTES,
    }),
  };
}

async function renewLeases(client: WorkClient, leases: readonly LeaseReference[]) {
  const singly = () =>
    Promise.allSettled(leases.map((lease) => client.renewLease(lease, { timeoutMs: CALL_MS })));
  if (leases.length === 1) return singly();
  try {
    const { renewals } = await client.renewLeases({ leases: [...leases] }, { timeoutMs: CALL_MS });
    return renewals.map(({ result }) =>
      result.case === "renewed" ? fulfilled(result.value) : rejected(result.value),
    );
  } catch (error) {
    if (isBatchRefused(error)) return singly();
    throw error;
  }
}

async function reportAgents(client: WorkClient, reports: readonly AgentReportRequest[]) {
  const singly = () =>
    Promise.allSettled(reports.map((report) => client.reportAgent(report, { timeoutMs: CALL_MS })));
  if (reports.length === 1) return singly();
  try {
    const { results } = await client.reportAgents({ reports: [...reports] }, { timeoutMs: CALL_MS });
    return results.map(({ result }) =>
      result.case === "applied" ? fulfilled(result.value) : rejected(result.value),
    );
  } catch (error) {
    if (isBatchRefused(error)) return singly();
    throw error;
  }
}

/** Estimates the size of a message in bytes: its texts and byte fields, and a few bytes for each value. */
function approximateBytes(value: unknown): number {
  if (typeof value === "string") return 3 * value.length;
  if (value instanceof Uint8Array) return value.length;
  if (typeof value !== "object" || value === null) return 8;
  return Object.values(value).reduce<number>((sum, each) => sum + 4 + approximateBytes(each), 0);
}

import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Work } from "#gen/runner/v1/work_pb.js";
import type {
  FailureSchema,
  FinishWorkRequest_Outcome,
  FinishWorkRequest_StepPushSchema,
  LeaseWorkRequestSchema,
  ReportProgressRequest_EnvironmentProgressSchema,
  ReportProgressRequest_LogChunkSchema,
  ReportProgressRequest_StepProgressSchema,
  ReportProgressRequestSchema,
  ReportProgressResponse,
  WorkReportSchema,
} from "#gen/runner/v1/work_service_pb.js";
import {
  CALL_MS,
  classifyFailure,
  fulfilled,
  isBatchRefused,
  rejected,
  type WorkClient,
} from "./connection.ts";

/** The lease that a call is about. */
export type LeaseReference = Pick<Work, "leaseId" | "fence">;

/** The events since the last report. */
export interface Progress {
  readonly environment?: MessageInitShape<typeof ReportProgressRequest_EnvironmentProgressSchema>;
  readonly steps?: MessageInitShape<typeof ReportProgressRequest_StepProgressSchema>[];
  readonly logs?: MessageInitShape<typeof ReportProgressRequest_LogChunkSchema>[];
}

/** The end of a piece of work. */
export interface WorkEnd {
  readonly outcome: FinishWorkRequest_Outcome;
  readonly failure?: MessageInitShape<typeof FailureSchema>;
  readonly warnings?: MessageInitShape<typeof FailureSchema>[];
  /** The push that people must approve before the work continues. */
  readonly push?: MessageInitShape<typeof FinishWorkRequest_StepPushSchema>;
}

/** Progress or an end that is waiting to be sent. */
export interface WaitingReport {
  readonly progress?: Progress;
  readonly end?: WorkEnd;
  /** When it happened, in the time of performance.now(). */
  readonly at: number;
  /** True if it may wait for others. */
  readonly mayWait: boolean;
  /** Called with the response to progress, or with undefined once the work is finished. */
  readonly resolve: (response: ReportProgressResponse | undefined) => void;
  readonly reject: (cause: unknown) => void;
}

/** The reports of one lease in order; all waiting reports are sent as one. */
export interface ReportChannel {
  readonly name: LeaseReference;
  readonly waiting: WaitingReport[];
}

/** Replaces finished work: the call that finishes it leases more. */
export interface NextWork {
  /** Returns the lease request to send when `ended` pieces of work end; undefined to lease nothing. */
  request(ended: number): MessageInitShape<typeof LeaseWorkRequestSchema> | undefined;
  /** Receives the newly leased work, before the finished executions learn of their end. */
  take(works: readonly Work[]): void;
}

export const NO_WORK: NextWork = { request: () => undefined, take: () => undefined };

/** The contract's maximums for one report. */
const MAX_STEPS = 50;
const MAX_LOGS = 16;
/** The contract's maximum for StepProgress.ago. */
const MAX_AGO_MS = 30_000;

/**
 * Sends the waiting reports of channels in one call. If the service refuses a combined report, sends its parts one by
 * one, so that only the refused one fails.
 *
 * @returns for each channel a rejection when the server was unreachable or the lease is lost; unsent reports wait
 *   again
 */
export async function sendReports(
  client: WorkClient,
  next: NextWork,
  channels: readonly ReportChannel[],
): Promise<readonly PromiseSettledResult<void>[]> {
  const parts = channels.map((channel) => ({ channel, reports: takeReports(channel) }));
  const lease = next.request(parts.filter(({ reports }) => reports.at(-1)?.end).length);
  const [only] = parts;
  if (only && parts.length === 1 && only.reports.length === 1 && !lease)
    return [await sendSingly(client, only)];
  const request = {
    reports: parts.map(({ channel, reports }) => toWorkReport(channel.name, reports)),
    ...(lease && { lease }),
  };
  try {
    const { results, works } = await client.reportWorks(request, { timeoutMs: CALL_MS });
    next.take(works);
    return await Promise.all(
      parts.map(async (part, index) => {
        const result = results[index]?.result;
        if (result?.case === "progress" || result?.case === "finish") {
          const response = result.case === "progress" ? result.value : undefined;
          for (const { resolve } of part.reports) resolve(response);
          return fulfilled(undefined);
        }
        const { reason } = rejected(result?.value);
        if (classifyFailure(reason) === "refused") return sendSingly(client, part);
        return putBack(part, reason);
      }),
    );
  } catch (error) {
    if (isBatchRefused(error)) return Promise.all(parts.map((part) => sendSingly(client, part)));
    return parts.map((part) => putBack(part, error));
  }
}

interface Part {
  readonly channel: ReportChannel;
  readonly reports: readonly WaitingReport[];
}

/** Takes as many waiting reports as fit in one, from the first. */
function takeReports({ waiting }: ReportChannel): WaitingReport[] {
  let [count, steps, logs, hasEnvironment] = [0, 0, 0, false];
  for (const { progress, end } of waiting) {
    steps += progress?.steps?.length ?? 0;
    logs += progress?.logs?.length ?? 0;
    const isFull = steps > MAX_STEPS || logs > MAX_LOGS || (hasEnvironment && progress?.environment);
    if (count > 0 && isFull) break;
    hasEnvironment ||= progress?.environment !== undefined;
    count += 1;
    if (end) break;
  }
  return waiting.splice(0, count);
}

/** Sends the reports one after the other, each in its own call. */
async function sendSingly(client: WorkClient, part: Part): Promise<PromiseSettledResult<void>> {
  const { name } = part.channel;
  for (const [index, report] of part.reports.entries()) {
    try {
      const options = { timeoutMs: CALL_MS };
      if (report.end) {
        await client.finishWork({ ...report.end, ...name }, options);
        report.resolve(undefined);
      } else {
        report.resolve(await client.reportProgress({ ...toProgress([report]), ...name }, options));
      }
    } catch (error) {
      if (classifyFailure(error) !== "refused") {
        return putBack({ ...part, reports: part.reports.slice(index) }, error);
      }
      report.reject(error);
    }
  }
  return fulfilled(undefined);
}

function putBack({ channel, reports }: Part, cause: unknown): PromiseRejectedResult {
  channel.waiting.unshift(...reports);
  return { status: "rejected", reason: cause };
}

function toWorkReport(
  name: LeaseReference,
  reports: readonly WaitingReport[],
): MessageInitShape<typeof WorkReportSchema> {
  const end = reports.at(-1)?.end;
  const progress = end ? reports.slice(0, -1) : reports;
  return {
    ...(progress.length > 0 && { progress: { ...toProgress(progress), ...name } }),
    ...(end && { finish: { ...end, ...name } }),
  };
}

function toProgress(
  reports: readonly WaitingReport[],
): Omit<MessageInitShape<typeof ReportProgressRequestSchema>, "$typeName"> {
  const environment = reports.find(({ progress }) => progress?.environment)?.progress?.environment;
  const now = performance.now();
  return {
    ...(environment && { environment }),
    steps: reports.flatMap(({ progress, at }) => {
      const ago = durationFromMs(Math.min(Math.max(0, Math.round(now - at)), MAX_AGO_MS));
      return (progress?.steps ?? []).map((step) => ({ ...step, ago }));
    }),
    logs: reports.flatMap(({ progress }) => progress?.logs ?? []),
  };
}

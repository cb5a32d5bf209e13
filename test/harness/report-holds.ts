import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  ReportWorksRequestSchema,
  type ReportWorksResponse,
  ReportWorksResponseSchema,
  type WorkReport,
  WorkReportResultSchema,
} from "#gen/runner/v1/work_service_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";

/** A part of a call for several leases that a proxy holds, whatever else is in the call. */
export interface ReportHold {
  /** What it holds: progress that fits, or the end of work. */
  readonly what: "progress" | "finish";
  readonly fits: (report: WorkReport) => boolean;
  /** Before the server receives it, or after. */
  readonly at: "request" | "answer";
  readonly reached: () => void;
  isReleased: boolean;
  /** True once the server has received what is held after that. */
  isForwarded: boolean;
}

const HELD = create(WorkReportResultSchema, {
  result: {
    case: "error",
    value: { detail: { reason: ErrorReason.UNAVAILABLE }, message: "the proxy holds this report" },
  },
});

/** Which parts of a call are forwarded, and which are held. */
export interface SplitReports {
  /** The call without what is held, in binary. */
  readonly request: Buffer;
  /** Returns the response to the whole call: what is held is unavailable, so that the runner repeats it alone. */
  respond(answer: Buffer): Buffer;
}

/** Splits a ReportWorks call by what is to be held; undefined when nothing of it is. */
export function splitReports(body: Buffer, holds: readonly ReportHold[]): SplitReports | undefined {
  const req = fromBinary(ReportWorksRequestSchema, body);
  const held = req.reports.map((report) => holds.find((hold) => !hold.isReleased && matches(hold, report)));
  if (held.every((hold) => hold === undefined)) return undefined;
  const forwarded = req.reports.map((report, index) => forwardedPart(report, held[index]));
  const request = { ...req, reports: forwarded.filter((report) => report !== undefined) };
  // Progress before a held end is forwarded: the end is reached once the server has that.
  for (const [index, hold] of held.entries()) {
    if (hold?.at === "request" && !forwarded[index]) hold.reached();
  }
  return {
    request: Buffer.from(toBinary(ReportWorksRequestSchema, request)),
    respond(bytes) {
      const answer = fromBinary(ReportWorksResponseSchema, bytes);
      const rest = [...answer.results];
      const results = forwarded.map((report, index): ReportWorksResponse["results"][number] => {
        const result = report && rest.shift();
        const hold = held[index];
        if (!hold) return result ?? HELD;
        if (hold.at === "answer") hold.isForwarded = true;
        hold.reached();
        return HELD;
      });
      return Buffer.from(toBinary(ReportWorksResponseSchema, { ...answer, results }));
    },
  };
}

function matches(hold: ReportHold, report: WorkReport): boolean {
  return report[hold.what] !== undefined && hold.fits(report);
}

/** What the server gets of a report: progress goes before the end of the same work. */
function forwardedPart(report: WorkReport, hold: ReportHold | undefined): WorkReport | undefined {
  if (!hold) return report;
  if (hold.isForwarded) return undefined;
  const { finish: _, ...progressOnly } = report;
  if (hold.what === "progress") return hold.at === "answer" ? progressOnly : undefined;
  if (hold.at === "answer") return report;
  return report.progress ? progressOnly : undefined;
}

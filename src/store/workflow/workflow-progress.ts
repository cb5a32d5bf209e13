import { type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { WorkflowError } from "#gen/service/v1/workflow_error_pb.js";
import { messageOfError } from "../../domain/workflow/execution/workflow-error.ts";
import { fromBody } from "../json.ts";

/** The fields that the statuses of executions and actions have in common. */
interface Status {
  session: string;
  failures: WorkflowError[];
  warnings: WorkflowError[];
  failureMessage: string;
  warningMessage: string;
}

/**
 * Returns the text of the column `progress`: a status without what other columns hold, without the session of the
 * specification, and without the texts that repeat those of errors. Unlike in a body, empty values are left out and
 * enums are numbers.
 * @param rest the status without the fields of other columns
 */
export function progressText<D extends DescMessage>(
  schema: D,
  rest: MessageShape<D> & Status,
  session: string,
): string {
  const { failures, warnings, failureMessage, warningMessage } = rest;
  const short = {
    ...rest,
    session: rest.session === session ? "" : rest.session,
    failureMessage: failureMessage === messageOfError(failures) ? "" : failureMessage,
    warningMessage: warningMessage === messageOfError(warnings) ? "" : warningMessage,
  };
  return JSON.stringify(toJson(schema, short, { enumAsInteger: true }));
}

/** Parses a text of {@link progressText} to a status; the caller fills in the values of other columns. */
export function statusOfProgress<D extends DescMessage>(
  schema: D,
  progress: string | null,
  session: string,
): MessageShape<D> {
  const status = fromBody(schema, progress ?? "{}");
  const common = status as MessageShape<D> & Status;
  common.session ||= session;
  common.failureMessage ||= messageOfError(common.failures);
  common.warningMessage ||= messageOfError(common.warnings);
  return status;
}

/** Returns the column of an instant, in milliseconds since 1970 UTC. */
export const timeColumn = (at: Timestamp | undefined): number | null => (at ? timestampMs(at) : null);

/** Returns the instant of a column; undefined without one. */
export const timeOfColumn = (at: number | null): Timestamp | undefined =>
  at === null ? undefined : timestampFromMs(at);

import { toJsonString } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import type { WorkflowExecutionAction } from "#gen/service/v1/workflow_pb.js";
import {
  type StreamActionLogsResponse,
  StreamActionLogsResponseSchema,
  WorkflowService,
} from "#gen/service/v1/workflow_service_pb.js";
import { backOffMs, pause } from "../../runner/protocol/back-off.ts";
import { createHttpTransport } from "../../runner/protocol/connection.ts";
import { ExitCode, StartError } from "../start-error.ts";
import { call, failureOf, isNotFound, isTemporary, messageOf, optionsOf } from "./call.ts";
import { printable } from "./printable.ts";
import type { ServerAccess } from "./server-access.ts";
import { actionsOf } from "./workflow.ts";

const MAX_PAUSE_MS = 5_000;

export interface PrintedLogs {
  /** Only this step, from 0; undefined for all. */
  readonly step: number | undefined;
  /** True to continue until the action ends. */
  readonly follow: boolean;
  /** True to print one service.v1.StreamActionLogsResponse per line as JSON. */
  readonly json: boolean;
  /** How long to retry an unreachable server, in milliseconds. */
  readonly retryForMs: number;
  readonly print: (text: string) => void;
  /** Prints text that is not the result. */
  readonly note: (text: string) => void;
}

/**
 * Prints the logs of an action, or of each action of an execution.
 * @param id the id of the action or of the execution
 * @throws StartError
 */
export async function printLogs(access: ServerAccess, id: string, logs: PrintedLogs): Promise<void> {
  const actions = await readWithRetry(access, logs, () => actionsNamed(access, id));
  if (actions.length === 0) return logs.note(`the execution ${id} has no actions`);
  if (actions.length > 1 && (logs.follow || logs.json)) {
    const option = logs.follow ? "--follow" : "--json";
    throw new StartError(
      `${option} takes one action, and ${id} has ${actions.length}: chartroom workflow show ${id} lists them`,
    );
  }
  for (const action of actions) {
    if (actions.length > 1) logs.print(printable(`== ${action.id} ${action.metadata?.actionName ?? ""}\n`));
    await printAction(access, action.id, logs);
  }
}

/** Reads with retries while the server is unreachable. @throws StartError after the time for retries */
async function readWithRetry<T>(
  { server }: ServerAccess,
  { retryForMs, note }: Pick<PrintedLogs, "retryForMs" | "note">,
  read: () => Promise<T>,
): Promise<T> {
  const endsAt = performance.now() + retryForMs;
  for (let failures = 1; ; failures += 1) {
    try {
      const found = await read();
      if (failures > 1) note(`the server ${server} is back`);
      return found;
    } catch (error) {
      const isTemporary = error instanceof StartError && error.exitCode === ExitCode.unavailable;
      if (!isTemporary || performance.now() >= endsAt) throw error;
      if (failures === 1)
        note(`${error.message}; trying again for ${Math.round(retryForMs / 1_000)} seconds`);
    }
    await pause(Math.min(backOffMs(failures), MAX_PAUSE_MS), new AbortController().signal);
  }
}

async function actionsNamed(
  access: ServerAccess,
  id: string,
): Promise<readonly Pick<WorkflowExecutionAction, "id" | "metadata">[]> {
  const workflows = createClient(WorkflowService, createHttpTransport(access.server));
  try {
    const { workflowExecutionAction } = await call(access, (options) =>
      workflows.getWorkflowExecutionAction({ workflowExecutionActionId: id }, options),
    );
    return workflowExecutionAction ? [workflowExecutionAction] : [];
  } catch (error) {
    if (!isNotFound(error)) throw error;
    await call(access, (options) => workflows.getWorkflowExecution({ workflowExecutionId: id }, options));
    return actionsOf(access, id);
  }
}

/** Prints the logs of one action. Reopens a broken connection and does not repeat printed text. */
async function printAction(access: ServerAccess, id: string, logs: PrintedLogs): Promise<void> {
  const workflows = createClient(WorkflowService, createHttpTransport(access.server));
  const { step, follow, retryForMs, note } = logs;
  const request = { workflowExecutionActionId: id, follow, ...(step !== undefined && { stepIndex: step }) };
  const show = logs.json ? jsonShow(logs.print) : textShow(logs.print);
  const isNew = createFilter();
  let failures = 0;
  let failingSince = 0;
  for (;;) {
    let openedAt = Number.POSITIVE_INFINITY;
    const { onHeader, ...options } = optionsOf(access);
    const opened = (headers: Headers) => {
      onHeader?.(headers);
      openedAt = performance.now();
    };
    try {
      for await (const piece of workflows.streamActionLogs(request, { ...options, onHeader: opened })) {
        failures = 0;
        if (isNew(piece)) show(piece);
      }
      return;
    } catch (error) {
      const now = performance.now();
      // A stream that was open for a while had reached the server, even if the step printed nothing for hours.
      if (now - openedAt >= MAX_PAUSE_MS) failures = 0;
      if (failures === 0) failingSince = now;
      if (!isTemporary(error) || now - failingSince >= retryForMs) throw failureOf(error, access);
      failures += 1;
      if (failures === 1)
        note(`${messageOf(error)}; trying again for ${Math.round(retryForMs / 1_000)} seconds`);
    }
    await pause(Math.min(backOffMs(failures), MAX_PAUSE_MS), new AbortController().signal);
  }
}

/**
 * Returns a function that recognises new pieces of a restarted stream and removes known bytes from them. Pieces may
 * be cut differently after a restart, because the middle of a long log is discarded.
 */
export function createFilter(): (piece: StreamActionLogsResponse) => boolean {
  let last = { attempt: -1, stepIndex: -1, end: 0n };
  return (piece) => {
    const { attempt, stepIndex, offset, data } = piece;
    const isSameAttempt = attempt === last.attempt;
    if (isSameAttempt && stepIndex < last.stepIndex) return false;
    const known = isSameAttempt && stepIndex === last.stepIndex ? last.end : 0n;
    const end = offset + BigInt(data.length);
    if (end <= known) return false;
    last = { attempt, stepIndex, end };
    piece.leftOutBytes = offset > known ? offset - known : 0n;
    if (offset < known) {
      piece.offset = known;
      piece.data = data.subarray(Number(known - offset));
    }
    return true;
  };
}

function jsonShow(print: (text: string) => void) {
  return (piece: StreamActionLogsResponse) =>
    print(`${toJsonString(StreamActionLogsResponseSchema, piece)}\n`);
}

/**
 * Returns a function that prints pieces as text with uniform line endings and without characters that control a
 * terminal.
 */
export function textShow(print: (text: string) => void) {
  let attempt: number | undefined;
  let decoder = new TextDecoder();
  let step: number | undefined;
  /** A carriage return at the end of the last piece; the next piece may start with its line feed. */
  let held = "";
  const flush = () => {
    print(printable(held));
    held = "";
  };
  return (piece: StreamActionLogsResponse) => {
    const isSameStep = piece.attempt === attempt && piece.stepIndex === step;
    if (!isSameStep || piece.leftOutBytes > 0n) flush();
    if (attempt !== undefined && piece.attempt !== attempt) print(`-- attempt ${piece.attempt}\n`);
    // A piece may end in the middle of a character; a step may not.
    if (!isSameStep) decoder = new TextDecoder();
    attempt = piece.attempt;
    step = piece.stepIndex;
    if (piece.leftOutBytes > 0n) print(`\n-- ${piece.leftOutBytes} bytes are not kept\n`);
    const text = held + decoder.decode(piece.data, { stream: true });
    held = text.endsWith("\r") ? "\r" : "";
    print(printable(text.slice(0, text.length - held.length).replaceAll("\r\n", "\n")));
  };
}

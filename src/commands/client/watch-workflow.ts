import { setTimeout as delay } from "node:timers/promises";
import { toJsonString } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { ResourceType } from "#gen/service/v1/event_pb.js";
import { EventService } from "#gen/service/v1/event_service_pb.js";
import {
  WorkflowExecutionConclusion as Conclusion,
  type WorkflowExecution,
  WorkflowExecutionSchema,
} from "#gen/service/v1/workflow_pb.js";
import { backOffMs } from "../../runner/protocol/back-off.ts";
import { createHttpTransport } from "../../runner/protocol/connection.ts";
import { ExitCode, StartError } from "../start-error.ts";
import { optionsOf } from "./call.ts";
import { printable } from "./printable.ts";
import type { ServerAccess } from "./server-access.ts";
import { actionsOf, getExecution } from "./workflow.ts";
import { errorText, stateOfAction, stateOfExecution } from "./workflow-text.ts";

/**
 * Maximum time between reads of the execution: a caller without permission for events learns of changes only this
 * way.
 */
const READ_MS = 10_000;
/** Maximum pause between two attempts: a person is waiting. */
const MAX_PAUSE_MS = 5_000;

export interface WatchedExecution {
  readonly executionId: string;
  /** How long to retry an unreachable server, in milliseconds. */
  readonly retryForMs: number;
  /** True to print one service.v1.WorkflowExecution per line as JSON. */
  readonly json: boolean;
  readonly print: (text: string) => void;
  /** Prints text that is not the result. */
  readonly note: (text: string) => void;
}

/**
 * Prints the state of an execution and its actions whenever it changes, until the execution ends.
 * @returns whether it has succeeded
 * @throws StartError when it cannot be read, or the server was unreachable for too long
 */
export async function watchExecution(access: ServerAccess, watched: WatchedExecution): Promise<boolean> {
  const { executionId, retryForMs, note } = watched;
  const leaving = new AbortController();
  const show = watched.json ? jsonShow(watched.print) : textShow(access, watched.print);
  let changes = watchChanges(access, executionId, leaving.signal);
  let openedAt = performance.now();
  let failures = 0;
  let failingSince = 0;
  try {
    for (;;) {
      const changed = changes.next();
      try {
        const execution = await getExecution(access, executionId);
        await show(execution);
        if (failures > 0) note(`the server ${access.server} is back`);
        failures = 0;
        const conclusion = execution.status?.conclusion ?? Conclusion.UNSPECIFIED;
        if (conclusion !== Conclusion.UNSPECIFIED) return conclusion === Conclusion.SUCCEEDED;
      } catch (error) {
        const isTemporary = error instanceof StartError && error.exitCode === ExitCode.unavailable;
        // Without announced changes, the last successful read may be long ago.
        if (failures === 0) failingSince = performance.now();
        if (!isTemporary || performance.now() - failingSince >= retryForMs) throw error;
        failures += 1;
        if (failures === 1)
          note(`${error.message}; trying again for ${Math.round(retryForMs / 1_000)} seconds`);
        await delay(Math.min(backOffMs(failures), MAX_PAUSE_MS));
        continue;
      }
      await Promise.race([changed, delay(READ_MS, undefined, { signal: leaving.signal })]);
      // Do not reopen a refused stream at once.
      if (!changes.isOver() || performance.now() - openedAt < READ_MS) continue;
      openedAt = performance.now();
      changes = watchChanges(access, executionId, leaving.signal);
    }
  } finally {
    leaving.abort();
  }
}

/** Watches the events of an execution for changes, if they are available. */
function watchChanges(access: ServerAccess, executionId: string, signal: AbortSignal) {
  let change = Promise.withResolvers<void>();
  let isOver = false;
  const resourceTypeFilters = [{ resourceType: ResourceType.WORKFLOW_EXECUTION, resourceIds: [executionId] }];
  const read = async () => {
    const events = createClient(EventService, createHttpTransport(access.server));
    const scope = { case: "organization" as const, value: true };
    const { onHeader, ...options } = optionsOf(access);
    // Read the execution once the stream has started, to catch changes before that.
    const opened = (headers: Headers) => {
      onHeader?.(headers);
      change.resolve();
    };
    for await (const _ of events.watchEvents(
      { scope, resourceTypeFilters },
      { ...options, onHeader: opened, signal },
    ))
      change.resolve();
  };
  void read()
    .catch(() => undefined)
    .finally(() => {
      isOver = true;
    });
  return {
    isOver: () => isOver,
    /** Returns a promise that resolves at the next change. */
    next(): Promise<void> {
      change = Promise.withResolvers();
      return change.promise;
    },
  };
}

function jsonShow(print: (text: string) => void) {
  let last = "";
  return async (execution: WorkflowExecution) => {
    const line = `${toJsonString(WorkflowExecutionSchema, execution)}\n`;
    if (line !== last) print(line);
    last = line;
  };
}

function textShow(access: ServerAccess, print: (text: string) => void) {
  const printed = new Map<string, string>();
  const tell = (key: string, line: string) => {
    if (printed.get(key) === line) return;
    printed.set(key, line);
    print(printable(`${line}\n`));
  };
  return async (execution: WorkflowExecution) => {
    for (const action of await actionsOf(access, execution.id)) {
      const facts = [stateOfAction(action), errorText(action.status?.failures ?? [])]
        .filter(Boolean)
        .join(": ");
      tell(action.id, `action ${action.id} ${action.metadata?.actionName ?? ""}: ${facts}`);
    }
    const { status } = execution;
    for (const { message } of status?.warnings ?? []) tell(`warning ${message}`, `warning: ${message}`);
    const facts = [stateOfExecution(execution), errorText(status?.failures ?? [])].filter(Boolean).join(": ");
    tell(execution.id, `execution ${execution.id}: ${facts}`);
  };
}

import { ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { type StreamActionLogsResponse, WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import type { ReachableServer } from "./server.ts";

/** An open stream of the output of an action's steps, read in the background. */
export interface LogStream {
  /** Resolves when the response headers have arrived. */
  readonly opened: Promise<void>;
  /** The messages so far. */
  readonly pieces: readonly StreamActionLogsResponse[];
  /** Resolves once there are this many messages, or the stream is over. */
  until(count: number): Promise<void>;
  /** Resolves with the error that ended the stream; undefined for its regular end. */
  readonly ended: Promise<ConnectError | undefined>;
}

export function streamLogs(
  server: Pick<ReachableServer, "url" | "token">,
  workflowExecutionActionId: string,
  more: { stepIndex?: number; afterOffset?: bigint; follow?: boolean } = {},
  token = server.token,
): LogStream {
  const transport = createConnectTransport({ baseUrl: `${server.url}/api`, httpVersion: "1.1" });
  const begun = Promise.withResolvers<void>();
  const pieces: StreamActionLogsResponse[] = [];
  let isOver = false;
  let look = () => {};
  const read = async () => {
    const request = { workflowExecutionActionId, ...more };
    const stream = createClient(WorkflowService, transport).streamActionLogs(request, {
      headers: { authorization: `Bearer ${token}` },
      onHeader: () => begun.resolve(),
    });
    for await (const piece of stream) {
      pieces.push(piece);
      look();
    }
    return undefined;
  };
  const ended = read()
    .catch((thrown) => ConnectError.from(thrown))
    .finally(() => {
      isOver = true;
      begun.resolve();
      look();
    });
  return {
    opened: begun.promise,
    pieces,
    ended,
    until: (count) =>
      new Promise((resolve) => {
        look = () => {
          if (isOver || pieces.length >= count) resolve();
        };
        look();
      }),
  };
}

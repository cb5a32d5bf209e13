import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import type { ReachableServer } from "./server.ts";

/** Reads the log of an action until the text of one step matches, or to its end. */
export async function readLog(
  server: Pick<ReachableServer, "url" | "token">,
  workflowExecutionActionId: string,
  { stepIndex = 0, until = () => false }: { stepIndex?: number; until?: (text: string) => boolean } = {},
): Promise<string> {
  const cancelled = new AbortController();
  const client = createClient(
    WorkflowService,
    createConnectTransport({ baseUrl: `${server.url}/api`, httpVersion: "1.1" }),
  );
  const stream = client.streamActionLogs(
    { workflowExecutionActionId, stepIndex, follow: true },
    { headers: { authorization: `Bearer ${server.token}` }, signal: cancelled.signal },
  );
  let text = "";
  let attempt = 0;
  for await (const piece of stream) {
    if (piece.attempt !== attempt) text = "";
    attempt = piece.attempt;
    text += Buffer.from(piece.data).toString();
    if (until(text)) break;
  }
  cancelled.abort();
  return text;
}

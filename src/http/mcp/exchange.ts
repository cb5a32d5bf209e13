import type { CallRecord } from "../../rpc/access/call-record.ts";
import type { ReportFault } from "../../rpc/error/error.ts";
import type { CallTool } from "../../rpc/tools/tool-call.ts";
import { MAX_RESULT_BYTES, type ToolResult } from "../../rpc/tools/tool-result.ts";
import { type Tool, toolsFor } from "../../rpc/tools/tools.ts";
import type { HttpRequest } from "../connection/listener.ts";
import { type InvalidParams, invalidParams } from "./check-params.ts";

/** The description of the server as a whole, for models. */
const INSTRUCTIONS = [
  "Chartroom runs workflows and coding agents on a team's own machines; tools are its operations, and do what your token may do.",
  "A workflow is started with start_workflow; its execution has actions, one for each repository or project, whose output stream_action_logs reads. watch_events waits for changes, watch_agent_execution for what an agent says.",
  "Lists come in pages: `pagination.nextToken` of an answer is `pagination.token` of the next request. Fields that a call does not need are left out; times are RFC 3339, and integers of 64 bits are texts.",
  "A tool error tells a `reason`. Give calls that change something an `idempotencyKey`, and repeat them with it when no answer came.",
].join("\n\n");

/** Headers that the protocol uses. The token is not among them: the caller is already authenticated. */
const HEADERS = ["accept", "content-type", "mcp-method", "mcp-name", "mcp-protocol-version"];

/** One message of an admitted caller. */
export interface Exchange {
  readonly message: object;
  readonly req: HttpRequest;
  readonly caller: NonNullable<CallRecord["caller"]>;
  readonly record: CallRecord;
  /** The tools of this request by name; the caller may not be allowed to call all of them. */
  readonly tools: ReadonlyMap<string, Tool>;
  readonly callTool: CallTool;
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal;
  readonly version: string;
  readonly report: ReportFault;
}

/**
 * Answers one message with a protocol server that is created for this message. It supports revision 2026-07-28 and
 * earlier ones, whose clients get no session.
 */
export async function exchange(asked: Exchange): Promise<Response> {
  const { message, req, record, signal, report } = asked;
  // Loaded with the first request: most servers never get one.
  const protocol = await import("@modelcontextprotocol/server");
  const invalid = invalidParams(protocol, message);
  if (invalid) return invalidParamsResponse(protocol, invalid, req);
  let failure: unknown;
  const handler = protocol.createMcpHandler(() => createServer(protocol, asked), {
    // Nothing here changes without a new release, so there is nothing to subscribe to.
    maxSubscriptions: 0,
    onerror: (error) => {
      failure = error;
    },
  });
  const headers = new Headers();
  for (const name of HEADERS) {
    const value = req.headers[name];
    if (typeof value === "string") headers.set(name, value);
  }
  const request = new Request("https://chartroom.invalid/mcp", { method: "POST", headers, signal });
  const response = await handler.fetch(request, { parsedBody: message });
  // Mistakes of clients also end up here, but with other statuses.
  if (response.status === 500) report(failure ?? new Error("the protocol layer failed"), record);
  return response;
}

/** Revisions since this one answer invalid requests with a status of their own; earlier clients read no such answers. */
const REVISION_WITH_STATUS = "2026-07-28";

function invalidParamsResponse(
  { ProtocolErrorCode }: Protocol,
  { id, message }: InvalidParams,
  req: HttpRequest,
): Response {
  const revision = req.headers["mcp-protocol-version"];
  const hasStatus = typeof revision === "string" && revision >= REVISION_WITH_STATUS;
  const error = { code: ProtocolErrorCode.InvalidParams, message: `Invalid params: ${message}` };
  return Response.json({ jsonrpc: "2.0", id, error }, { status: hasStatus ? 400 : 200 });
}

type Protocol = typeof import("@modelcontextprotocol/server");

function createServer(protocol: Protocol, asked: Exchange) {
  const { caller, tools, version } = asked;
  const server = new protocol.Server(
    { name: "chartroom", title: "Chartroom", version },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
  );
  server.setRequestHandler("tools/list", async () => ({
    tools: toolsFor(caller, tools.values()).map(toolForm),
  }));
  server.setRequestHandler("tools/call", async ({ params }) => {
    const tool = tools.get(params.name);
    if (!tool) {
      const { InvalidParams } = protocol.ProtocolErrorCode;
      // The client chooses the name, so it is not repeated in the error.
      throw new protocol.ProtocolError(InvalidParams, "no tool has this name: tools/list names them");
    }
    return resultForm(await call(asked, tool, params.arguments ?? {}));
  });
  return server;
}

function call(
  { callTool, req, record, signal }: Exchange,
  tool: Tool,
  args: Readonly<Record<string, unknown>>,
): Promise<ToolResult> {
  return callTool({ tool, args, authorization: req.headers.authorization, record, signal });
}

function toolForm({ name, title, description, inputSchema, isReadOnly, isIdempotent }: Tool) {
  return {
    name,
    title,
    description,
    inputSchema: inputSchema as { type: "object" },
    annotations: { readOnlyHint: isReadOnly, idempotentHint: isIdempotent },
  };
}

const SHORTENED = `Long texts of the answer were cut, so that it has at most ${MAX_RESULT_BYTES} bytes.`;

function resultForm({ value, text, isError, isShortened, isReplayed }: ToolResult) {
  const meta = { ...(isShortened && { shortened: true }), ...(isReplayed && { replayed: true }) };
  return {
    content: [
      { type: "text" as const, text },
      ...(isShortened ? [{ type: "text" as const, text: SHORTENED }] : []),
    ],
    structuredContent: value as Record<string, unknown>,
    ...(isError && { isError }),
    ...(Object.keys(meta).length > 0 && { _meta: meta }),
  };
}

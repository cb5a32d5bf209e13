import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Code, type ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus } from "@connectrpc/connect/protocol-connect";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { CallRecord } from "../../rpc/access/call-record.ts";
import { type ReportFault, toConnectError, writeConnectError } from "../../rpc/error/error.ts";
import { createJsonCalls } from "../../rpc/in-memory.ts";
import type { ParseElsewhere } from "../../rpc/request/parsed-request.ts";
import type { Route } from "../../rpc/routes.ts";
import { createToolCalls } from "../../rpc/tools/tool-call.ts";
import { errorResult } from "../../rpc/tools/tool-result.ts";
import type { ToolDocument } from "../../rpc/tools/tool-schema.ts";
import { Tools } from "../../rpc/tools/tools.ts";
import { requireMayUseMcp } from "../../services/policy/organization-policies.ts";
import type { BodyBudget } from "../body/body-budget.ts";
import type { HttpRequest, HttpResponse } from "../connection/listener.ts";
import { admitBearer, type BearerOptions } from "../dispatch/admit-bearer.ts";
import type { Dispatch } from "../dispatch/dispatch.ts";
import { writeStream, writeWhole } from "../output/node-response.ts";
import type { SessionOrigin } from "../sign-in/session-origin.ts";
import { type Exchange, exchange } from "./exchange.ts";
import { jsonRpcCodeOf, readMessage } from "./read-message.ts";

const PATH = /^\/mcp(?:\?|$)/;
const DOCUMENT_FILE = join(import.meta.dirname, "../../../gen/tools.json");

/** Name in the access log for requests that call no operation; it contains nothing from the request. */
const OPERATION = "mcp";

/** Headers that Node writes itself on HTTP/1, and that HTTP/2 forbids. */
const CONNECTION_HEADERS = ["connection", "keep-alive", "transfer-encoding"];

export interface McpOptions extends BearerOptions {
  readonly store: Parameters<typeof requireMayUseMcp>[0];
  readonly routes: ReadonlyMap<string, Route>;
  readonly budget: BodyBudget;
  readonly parseElsewhere: ParseElsewhere;
  readonly sessionOrigin: () => SessionOrigin;
  /** URL under which clients reach the server. */
  readonly baseUrl: () => string;
  /** Origins whose pages may call the server. */
  readonly corsOrigins: ReadonlySet<string>;
  /** The release of the server. */
  readonly version: string;
  readonly report: ReportFault;
}

/** Returns whether a request is for the Model Context Protocol. */
export function isMcp(req: HttpRequest): boolean {
  return PATH.test(req.url ?? "");
}

/**
 * Creates the dispatch of the Model Context Protocol, which offers the operations of the contract as tools to the owner
 * of the bearer token. It keeps no state between requests and reads no cookie. Tools are loaded with the first request.
 */
export function createMcpDispatch(options: McpOptions): Dispatch {
  const { admission, routes, parseElsewhere, report } = options;
  const callTool = createToolCalls({
    callJson: createJsonCalls(admission, parseElsewhere),
    draining: admission.draining,
    report,
  });
  let loaded: Promise<Tools> | undefined;
  const tools = () => {
    loaded ??= readFile(DOCUMENT_FILE, "utf8").then(
      (text) => new Tools(routes, JSON.parse(text) as ToolDocument),
    );
    // A failed read, for example when no file could be opened, is retried with the next request.
    loaded.catch(() => {
      loaded = undefined;
    });
    return loaded;
  };
  return async (req, res, record) => {
    record.operation = OPERATION;
    const gone = new AbortController();
    res.once("close", () => gone.abort());
    try {
      const caller = await admit(options, req, res, record);
      if (req.method !== "POST") return await respondMethodNotAllowed(res, record);
      const callerKey = caller.accountId || caller.subject.id;
      record.output?.charge(callerKey);
      const hold = options.budget.hold(callerKey);
      try {
        const message = await readMessage(req, hold);
        const asked: Exchange = {
          ...{ message, req, caller, record, callTool, report },
          tools: (await tools()).choose(namedTools(req.url ?? "")),
          signal: gone.signal,
          version: options.version,
        };
        await write(res, record, await exchange(asked));
      } finally {
        hold.release();
      }
    } catch (thrown) {
      const error = toConnectError(thrown, record, report);
      // Unimplemented can only mean the media type of the body.
      const status = error.code === Code.Unimplemented ? 415 : codeToHttpStatus(error.code);
      if (!res.headersSent) return refuse(res, record, error, status);
      record.code = error.code;
      res.destroy();
    }
  };
}

/**
 * Authenticates the sender by the bearer token alone, and counts the request.
 * @throws ConnectError or DomainError when the caller is not admitted
 */
async function admit(options: McpOptions, req: HttpRequest, res: HttpResponse, record: CallRecord) {
  const { origin } = req.headers;
  if (origin !== undefined && !isAllowed(options, origin)) {
    const message = "pages of this origin may not call the server: --cors-origins names those that may";
    throw writeConnectError(ErrorReason.PERMISSION_DENIED, message, { permission: "origin" });
  }
  const caller = await admitBearer(options, req, res, record);
  await requireMayUseMcp(options.store, caller);
  return caller;
}

function isAllowed({ baseUrl, sessionOrigin, corsOrigins }: McpOptions, origin: string): boolean {
  return origin === new URL(baseUrl()).origin || origin === sessionOrigin().origin || corsOrigins.has(origin);
}

/** Returns the operations that the query names as tools. No token is read from the query. */
function namedTools(url: string): string[] {
  const query = new URLSearchParams(url.replace(/^[^?]*\??/, ""));
  if ([...query.keys()].some((name) => name !== "tools")) {
    const message =
      "the query of the URL takes one parameter, tools; a token goes into the header Authorization";
    throw writeConnectError(ErrorReason.VALUE_UNUSABLE, message, { field: "query" });
  }
  return query
    .getAll("tools")
    .flatMap((names) => names.split(","))
    .filter((name) => name !== "");
}

async function write(res: HttpResponse, record: CallRecord, response: Response): Promise<void> {
  const header = new Headers(response.headers);
  for (const name of CONNECTION_HEADERS) header.delete(name);
  header.set("cache-control", "no-store");
  header.set("x-content-type-options", "nosniff");
  // Clients of earlier revisions get events: keep-alives between them stop proxies from closing a waiting call.
  if (response.body && header.get("content-type")?.startsWith("text/event-stream")) {
    const body = response.body as unknown as AsyncIterable<Uint8Array>;
    return writeStream(res, { status: response.status, header, body }, record.output);
  }
  const body = new Uint8Array(await response.arrayBuffer());
  return writeWhole(res, response.status, header, body, record.output);
}

function respondMethodNotAllowed(res: HttpResponse, record: CallRecord): Promise<void> {
  res.setHeader("allow", "POST");
  const message = "use POST: the server keeps no sessions and starts no streams";
  const error = writeConnectError(ErrorReason.TRANSPORT_UNSUPPORTED, message, { allowed: "POST" });
  return refuse(res, record, error, 405);
}

/** Sends the error of a request that reaches no tool, with its reason, as a JSON-RPC error. */
function refuse(res: HttpResponse, record: CallRecord, error: ConnectError, status: number): Promise<void> {
  record.code = error.code;
  const header = new Headers({
    "content-type": "application/json",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  });
  for (const [name, value] of error.metadata) header.set(name, value);
  const { value: data } = errorResult(error);
  const body = {
    jsonrpc: "2.0",
    id: null,
    error: { code: jsonRpcCodeOf(error), message: error.rawMessage, data },
  };
  return writeWhole(res, status, header, Buffer.from(JSON.stringify(body)), record.output);
}

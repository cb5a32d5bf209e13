/**
 * The ceiling on PostgreSQL: the fastest server that Node and the driver allow.
 * A single file on node:http with a pool of pg and named prepared statements,
 * which copies the stored JSON into the answer as text. It authenticates each
 * call with a query, checks the fields that it reads, and writes the same access
 * line.
 *
 * It leaves out the same parts as the ceiling on SQLite (ceiling.ts).
 */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { logCall } from "./access-log.ts";
import { openPgQueries } from "./pg-queries.ts";
import type { PeerCaller, PeerRow } from "./project-queries.ts";
import { databaseUrl, dataFolder, serve } from "./serve-peer.ts";
import { openKeys, pageToken } from "./token-hash.ts";

const keys = openKeys(dataFolder());
const queries = openPgQueries(databaseUrl() ?? "", keys);

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const PREFIX = "/api/service.v1.";
const DEFAULT_PAGE_SIZE = 25;

class Refused extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const operations: Record<string, (body: string, caller: PeerCaller) => Promise<string>> = {
  async "ProjectService/GetProject"(body, caller) {
    const { projectId } = JSON.parse(body);
    if (typeof projectId !== "string" || !UUID.test(projectId)) throw invalid("projectId must be a UUID");
    const row = await queries.project(projectId.toLowerCase(), caller.organizationId);
    if (!row) throw new Refused(404, "not_found", "the project does not exist");
    return `{"project":${projectText(row)}}`;
  },
  async "ProjectService/ListProjects"(body, caller) {
    const { pagination } = JSON.parse(body);
    const size = pagination?.pageSize || DEFAULT_PAGE_SIZE;
    if (!Number.isInteger(size) || size < 0 || size > 100) throw invalid("pageSize must be from 0 to 100");
    const rows = await queries.projects(caller.organizationId, size + 1);
    const page = rows.slice(0, size);
    const last = page.at(-1);
    const nextToken = rows.length > size && last ? pageToken(keys, [caller.organizationId, ""], last) : "";
    return `{"pagination":{"nextToken":"${nextToken}"},"projects":[${page.map(projectText).join(",")}]}`;
  },
};

serve(createServer(answer));

async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const startedAt = performance.now();
  const requestId = randomUUID();
  const operation = req.url?.startsWith(PREFIX) ? req.url.slice(PREFIX.length) : "";
  let caller: PeerCaller | undefined;
  const reply = (status: number, code: string, text: string) => {
    res.writeHead(status, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(text),
      "x-request-id": requestId,
    });
    res.end(text);
    logCall({ requestId, operation: `service.v1.${operation}`, code, status, startedAt, caller });
  };
  try {
    const operate = operations[operation];
    if (!operate) throw new Refused(404, "unimplemented", "no such operation");
    const body = bodyOf(req);
    caller = await queries.callerOf(req.headers.authorization);
    if (!caller) throw new Refused(401, "unauthenticated", "the token opens nothing");
    reply(200, "ok", await operate(await body, caller));
  } catch (error) {
    const known = error instanceof Refused;
    const { status, code, message } = known ? error : { status: 500, code: "internal", message: "" };
    reply(status, code, JSON.stringify({ code, message }));
  }
}

/** Reads the body; this happens while the token is looked up. */
function bodyOf(req: IncomingMessage): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    req.on("data", (chunk: Buffer) => chunks.push(chunk));
    req.on("end", () => {
      const [first] = chunks;
      resolve((chunks.length === 1 && first ? first : Buffer.concat(chunks)).toString("utf8"));
    });
  });
}

/** Appends the project's users, which are in a separate column, to the stored text. */
function projectText({ body, used_by }: Pick<PeerRow, "body" | "used_by">): string {
  return `${body.slice(0, -1)},"usedBy":${used_by}}`;
}

function invalid(message: string): Refused {
  return new Refused(400, "invalid_argument", message);
}

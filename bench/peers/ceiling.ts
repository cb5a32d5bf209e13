/**
 * The ceiling: the fastest server that Node and SQLite allow. A single file on
 * node:http with better-sqlite3's prepared statements, which copies the stored
 * JSON into the answer as text. It authenticates with the same query, checks the
 * fields that it reads, and writes the same access line.
 *
 * It leaves out everything else: other operations, limits on the size and rate
 * of bodies, deadlines, gRPC, CORS, draining, the validation of fields that it
 * does not read, and the time when a token was last used.
 */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { logCall } from "./access-log.ts";
import { openQueries, type PeerCaller, type PeerRow } from "./project-queries.ts";
import { dataFolder, serve } from "./serve-peer.ts";
import { openKeys, pageToken } from "./token-hash.ts";

const keys = openKeys(dataFolder());

/** Values in subqueries keep the planner from replanning the statement at each binding, which costs 15 µs per token. */
const queries = openQueries(dataFolder(), keys, (statement) => statement.replaceAll("= ?", "= (select ?)"));

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const PREFIX = "/api/service.v1.";
const DEFAULT_PAGE_SIZE = 25;
const SEARCH_CHARACTERS = 256;

class Refused extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const operations: Record<string, (body: string, caller: PeerCaller) => string> = {
  "ProjectService/GetProject": (body, caller) => {
    const { projectId } = JSON.parse(body);
    if (typeof projectId !== "string" || !UUID.test(projectId)) throw invalid("projectId must be a UUID");
    const row = queries.project(projectId.toLowerCase(), caller.organizationId);
    if (!row) throw new Refused(404, "not_found", "the project does not exist");
    return `{"project":${projectText(row)}}`;
  },
  "ProjectService/ListProjects": (body, caller) => {
    const { pagination, filter } = JSON.parse(body);
    const size = pagination?.pageSize || DEFAULT_PAGE_SIZE;
    if (!Number.isInteger(size) || size < 0 || size > 100) throw invalid("pageSize must be from 0 to 100");
    const search = filter?.search ?? "";
    if (typeof search !== "string" || search.length > SEARCH_CHARACTERS) throw invalid("search is too long");
    const rows = queries.projects(caller.organizationId, search, size + 1);
    const page = rows.slice(0, size);
    const last = page.at(-1);
    const nextToken =
      rows.length > size && last ? pageToken(keys, [caller.organizationId, search], last) : "";
    return `{"pagination":{"nextToken":"${nextToken}"},"projects":[${page.map(projectText).join(",")}]}`;
  },
};

serve(createServer(answer));

function answer(req: IncomingMessage, res: ServerResponse): void {
  const startedAt = performance.now();
  const requestId = randomUUID();
  const operation = req.url?.startsWith(PREFIX) ? req.url.slice(PREFIX.length) : "";
  let caller: PeerCaller | undefined;
  const reply = (status: number, code: string, text: string) => {
    const length = Buffer.byteLength(text);
    res.writeHead(status, {
      "content-type": "application/json",
      "content-length": length,
      "x-request-id": requestId,
    });
    res.end(text);
    logCall({ requestId, operation: `service.v1.${operation}`, code, status, startedAt, caller });
  };
  const attempt = (act: () => void) => {
    try {
      act();
    } catch (error) {
      const known = error instanceof Refused;
      const { status, code, message } = known ? error : { status: 500, code: "internal", message: "" };
      reply(status, code, JSON.stringify({ code, message }));
    }
  };
  attempt(() => {
    const operate = operations[operation];
    if (!operate) throw new Refused(404, "unimplemented", "no such operation");
    caller = queries.callerOf(req.headers.authorization);
    if (!caller) throw new Refused(401, "unauthenticated", "the token opens nothing");
    const known = caller;
    const chunks: Buffer[] = [];
    req.on("data", (chunk: Buffer) => chunks.push(chunk));
    req.on("end", () => {
      const [first] = chunks;
      const body = chunks.length === 1 && first ? first : Buffer.concat(chunks);
      attempt(() => reply(200, "ok", operate(body.toString("utf8"), known)));
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

/**
 * Fastify in idiomatic use: a route with JSON schemas for its body, which Ajv
 * checks, and for its answer, which fast-json-stringify writes; better-sqlite3
 * with prepared statements. A hook looks up the token before the body is read,
 * and pino writes the access line once the answer is sent. The stored JSON is
 * parsed into the object of the answer.
 *
 * It leaves out the same parts as the ceiling (ceiling.ts).
 */
import { randomUUID } from "node:crypto";
import Fastify, { type FastifyRequest } from "fastify";
import { logCall } from "./access-log.ts";
import { openQueries, type PeerCaller, type PeerRow } from "./project-queries.ts";
import { getProjectSchema, listProjectsSchema } from "./project-schema.ts";
import { dataFolder, tellReady } from "./serve-peer.ts";
import { openKeys, pageToken } from "./token-hash.ts";

declare module "fastify" {
  interface FastifyRequest {
    caller: PeerCaller | undefined;
    startedAt: number;
  }
}

const keys = openKeys(dataFolder());
const queries = openQueries(dataFolder(), keys);

const CODES: Readonly<Record<number, string>> = {
  200: "ok",
  400: "invalid_argument",
  401: "unauthenticated",
};

const app = Fastify({ logger: false, genReqId: () => randomUUID() });
app.decorateRequest("caller", undefined);
app.decorateRequest("startedAt", 0);

app.addHook("onRequest", async (req, reply) => {
  req.startedAt = performance.now();
  reply.header("x-request-id", req.id);
  req.caller = queries.callerOf(req.headers.authorization);
  if (!req.caller) {
    await reply.code(401).send({ code: "unauthenticated", message: "the token opens nothing" });
  }
});

app.addHook("onResponse", async (req, { statusCode }) => {
  logCall({
    requestId: req.id,
    operation: req.url.slice("/api/".length),
    code: CODES[statusCode] ?? "unknown",
    status: statusCode,
    startedAt: req.startedAt,
    caller: req.caller,
  });
});

app.post<{ Body: { projectId: string } }>(
  "/api/service.v1.ProjectService/GetProject",
  { schema: getProjectSchema },
  async (req, reply) => {
    const row = queries.project(req.body.projectId.toLowerCase(), organizationOf(req));
    if (row) return { project: projectOf(row) };
    return reply.code(404).send({ code: "not_found", message: "the project does not exist" });
  },
);

app.post<{ Body: { pagination?: { pageSize?: number }; filter?: { search?: string } } }>(
  "/api/service.v1.ProjectService/ListProjects",
  { schema: listProjectsSchema },
  async (req) => {
    const { pagination, filter } = req.body;
    const size = pagination?.pageSize || 25;
    const search = filter?.search ?? "";
    const rows = queries.projects(organizationOf(req), search, size + 1);
    const page = rows.slice(0, size);
    const last = page.at(-1);
    const query = [organizationOf(req), search];
    const nextToken = rows.length > size && last ? pageToken(keys, query, last) : "";
    return { pagination: { nextToken }, projects: page.map(projectOf) };
  },
);

const address = await app.listen({ port: 0, host: "127.0.0.1" });
tellReady(Number(new URL(address).port));

function projectOf({ body, used_by }: Pick<PeerRow, "body" | "used_by">) {
  return { ...JSON.parse(body), usedBy: JSON.parse(used_by) };
}

function organizationOf({ caller }: FastifyRequest): string {
  return caller?.organizationId ?? "";
}

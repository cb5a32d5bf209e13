import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createValidator } from "@bufbuild/protovalidate";
import { Code, ConnectError, createContextKey, type Interceptor } from "@connectrpc/connect";
import { codeToHttpStatus, codeToString } from "@connectrpc/connect/protocol-connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import { logCall } from "./access-log.ts";
import type { openConnectQueries } from "./connect-queries.ts";
import type { openConnectWrites } from "./connect-writes.ts";
import type { PeerCaller } from "./project-queries.ts";
import { serve } from "./serve-peer.ts";
import { type openKeys, pageToken } from "./token-hash.ts";

const callerKey = createContextKey<PeerCaller | undefined>(undefined);

const logged: Interceptor = (next) => async (req) => {
  const startedAt = performance.now();
  const requestId = randomUUID();
  const tell = (code: string, status: number) =>
    logCall({
      requestId,
      operation: `${req.service.typeName}/${req.method.name}`,
      code,
      status,
      startedAt,
      caller: req.contextValues.get(callerKey),
    });
  try {
    const res = await next(req);
    res.header.set("x-request-id", requestId);
    tell("ok", 200);
    return res;
  } catch (thrown) {
    const { code } = ConnectError.from(thrown);
    tell(codeToString(code), codeToHttpStatus(code));
    throw thrown;
  }
};

const validator = createValidator();
const validated: Interceptor = (next) => (req) => {
  if (!req.stream) {
    const result = validator.validate(req.method.input, req.message);
    if (result.kind !== "valid") throw new ConnectError(String(result.error), Code.InvalidArgument);
  }
  return next(req);
};

function known(ctx: { values: { get(key: typeof callerKey): PeerCaller | undefined } }): PeerCaller {
  const caller = ctx.values.get(callerKey);
  if (!caller) throw new ConnectError("no caller", Code.Internal);
  return caller;
}

function found<T>(value: T | undefined): T {
  if (value === undefined) throw new ConnectError("the project does not exist", Code.NotFound);
  return value;
}

/** Serves projects with connect-node in idiomatic use, on the peer's own database. */
export function serveConnect(
  keys: ReturnType<typeof openKeys>,
  queries: ReturnType<typeof openConnectQueries>,
  writes: ReturnType<typeof openConnectWrites>,
): void {
  const authenticated: Interceptor = (next) => async (req) => {
    const hash = keys.tokenHash(req.header.get("authorization") ?? undefined);
    const caller = hash && (await queries.callerOf(hash));
    if (!caller) throw new ConnectError("the token opens nothing", Code.Unauthenticated);
    req.contextValues.set(callerKey, caller);
    return next(req);
  };

  const adapter = connectNodeAdapter({
    requestPathPrefix: "/api",
    interceptors: [logged, authenticated, validated],
    jsonOptions: { alwaysEmitImplicit: true },
    routes: (router) =>
      router.service(ProjectService, {
        async getProject({ projectId }, ctx) {
          return { project: found(await queries.findProject(known(ctx), projectId.toLowerCase())) };
        },
        async listProjects({ pagination, filter }, ctx) {
          const { organizationId } = known(ctx);
          const size = pagination?.pageSize || 25;
          const search = filter?.search ?? "";
          const rows = await queries.listProjects(organizationId, search, size + 1);
          const page = rows.slice(0, size);
          const last = page.at(-1);
          const nextToken =
            rows.length > size && last ? pageToken(keys, [organizationId, search], last.position) : "";
          return { pagination: { nextToken }, projects: page.map(({ project }) => project) };
        },
        async createProject(req, ctx) {
          return { project: await writes.createProject(known(ctx), req) };
        },
        async createProjects({ projects }, ctx) {
          return { createdProjects: await writes.createProjects(known(ctx), projects) };
        },
        async updateProject(req, ctx) {
          return { project: found(await writes.updateProject(known(ctx), req)) };
        },
      }),
  });

  serve(createServer(adapter));
}

/**
 * grpc-js in idiomatic use: it loads the contract from the .proto file, uses
 * better-sqlite3 with prepared statements, and handles the token and the access
 * line in the handler. The stored JSON is parsed into the object of the message;
 * its two timestamps are converted to the form that the loader expects.
 *
 * It only serves GetProject and leaves out the same parts as the ceiling (ceiling.ts).
 */
import { randomUUID } from "node:crypto";
import {
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  status as Status,
  type sendUnaryData,
} from "@grpc/grpc-js";
import { logCall } from "./access-log.ts";
import { projectService } from "./grpc-contract.ts";
import { openQueries, type PeerCaller } from "./project-queries.ts";
import { dataFolder, tellReady } from "./serve-peer.ts";
import { openKeys } from "./token-hash.ts";

const queries = openQueries(dataFolder(), openKeys(dataFolder()));

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function getProject(
  call: ServerUnaryCall<{ projectId: string }, object>,
  respond: sendUnaryData<object>,
): void {
  const startedAt = performance.now();
  const caller = queries.callerOf(String(call.metadata.get("authorization")[0] ?? ""));
  const { code, error, project } = outcome(call.request.projectId, caller);
  if (project) respond(null, { project });
  else respond({ code: error, details: code });
  const operation = "service.v1.ProjectService/GetProject";
  logCall({ requestId: randomUUID(), operation, code, status: 200, startedAt, caller });
}

function outcome(projectId: string, caller: PeerCaller | undefined) {
  if (!caller) return { code: "unauthenticated", error: Status.UNAUTHENTICATED };
  if (!UUID.test(projectId)) return { code: "invalid_argument", error: Status.INVALID_ARGUMENT };
  const row = queries.project(projectId.toLowerCase(), caller.organizationId);
  if (!row) return { code: "not_found", error: Status.NOT_FOUND };
  const project = JSON.parse(row.body);
  project.usedBy = JSON.parse(row.used_by);
  project.metadata.createdAt = moment(project.metadata.createdAt);
  project.metadata.updatedAt = moment(project.metadata.updatedAt);
  return { code: "ok", error: Status.OK, project };
}

function moment(text: string): { seconds: number; nanos: number } {
  const ms = Date.parse(text);
  return { seconds: Math.floor(ms / 1000), nanos: (ms % 1000) * 1_000_000 };
}

const server = new Server();
server.addService(projectService().service, { getProject });
server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  tellReady(port);
});

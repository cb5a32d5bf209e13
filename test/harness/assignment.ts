import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { createRouterTransport, type ServiceImpl } from "@connectrpc/connect";
import { AgentWorkService } from "#gen/runner/v1/agent_work_service_pb.js";
import { WorkSchema } from "#gen/runner/v1/work_pb.js";
import { WorkService } from "#gen/runner/v1/work_service_pb.js";
import { noIsolation } from "../../src/runner/isolation/isolation.ts";
import { Limiter } from "../../src/runner/process/limiter.ts";
import { type Assignment, newAssignment, type RunnerTools } from "../../src/runner/protocol/assignment.ts";
import { createWorkClient } from "../../src/runner/protocol/connection.ts";
import { Lease } from "../../src/runner/protocol/lease.ts";
import { createLeaseCalls } from "../../src/runner/protocol/lease-calls.ts";
import { createSourceControl } from "../../src/scm/source-control.ts";
import { realGit, realPrograms } from "./runner-git.ts";
import { temporaryFolder } from "./server.ts";

const LEASE_ID = "01900000-0000-7000-8000-000000000001";
const LEASE_MS = 60_000;

/** Returns the tools of a runner, with real programs and new folders. */
export async function realTools(): Promise<RunnerTools> {
  const folder = temporaryFolder();
  const [workspaces, prebuilds] = [join(folder, "workspaces"), join(folder, "prebuilds")];
  for (const made of [workspaces, prebuilds]) mkdirSync(made);
  return {
    programs: realPrograms,
    isolation: noIsolation(realPrograms.run),
    git: await realGit(),
    scm: createSourceControl({ allowPrivateAddresses: true, plainHttpHosts: new Set() }),
    workspaces,
    prebuilds,
    newEnvironments: new Limiter(1),
    serverUrl: "http://127.0.0.1:8080",
    log: { info() {}, warn() {}, error() {} },
  };
}

/** Returns work on lease from a fake service. End it with `lease.interrupt("lost")`. */
export function leasedAssignment(
  tools: RunnerTools,
  work: MessageInitShape<typeof WorkSchema>,
  service: Partial<ServiceImpl<typeof WorkService>> = {},
  agents: Partial<ServiceImpl<typeof AgentWorkService>> = {},
): Assignment {
  const transport = createRouterTransport(({ service: add }) => {
    add(WorkService, service);
    add(AgentWorkService, agents);
  });
  const expiresAt = timestampFromMs(Date.now() + LEASE_MS);
  const offered = create(WorkSchema, { leaseId: LEASE_ID, fence: 1n, expiresAt, ...work });
  return newAssignment(
    tools,
    offered,
    new Lease(createLeaseCalls(createWorkClient(transport, "cr_run_x")), offered),
  );
}

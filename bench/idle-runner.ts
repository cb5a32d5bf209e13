/**
 * A runner that executes nothing, used to measure the service alone. It leases
 * work, sends the reports of an action with a single step, and finishes it.
 * Reads SERVER, STATE_DIR, EXCHANGE_TOKENS, a comma-separated list with one
 * token for each organization that it works for, and SLOTS per organization.
 */
import { join } from "node:path";
import { type Work, WorkKind } from "#gen/runner/v1/work_pb.js";
import {
  FinishWorkRequest_Outcome as Outcome,
  ReportProgressRequest_StepProgress_State as State,
} from "#gen/runner/v1/work_service_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { createLog } from "../src/log.ts";
import { createHttpTransport, createWorkClient } from "../src/runner/protocol/connection.ts";
import type { Lease } from "../src/runner/protocol/lease.ts";
import { register } from "../src/runner/protocol/registration.ts";
import { poll } from "../src/runner/protocol/work-loop.ts";

const { SERVER = "", STATE_DIR = "", SLOTS = "8", EXCHANGE_TOKENS = "" } = process.env;
const log = createLog("info");
const draining = new AbortController();
process.once("SIGTERM", () => draining.abort());

const transport = createHttpTransport(SERVER);
const tokens: string[] = [];
for (const [index, exchangeToken] of EXCHANGE_TOKENS.split(",").entries()) {
  const { token } = await register({
    transport,
    server: SERVER,
    stateDir: join(STATE_DIR, String(index)),
    exchangeToken: async () => exchangeToken,
    introduction: {
      version: "bench",
      environmentClass: { displayName: "Idle", description: "Does nothing" },
    },
    log,
    signal: draining.signal,
  });
  tokens.push(token);
}
log.info({}, "the runner takes work");
// The runner starts to poll when it reads a byte from its standard input.
await new Promise((resolve) => process.stdin.once("data", resolve));
process.stdin.destroy();
const polls = tokens.map((token) =>
  poll({
    client: createWorkClient(transport, token),
    instanceId: "",
    kinds: [WorkKind.ACTION],
    slots: Number(SLOTS),
    log,
    draining: draining.signal,
    graceMs: 5_000,
    execute: (work, lease) => pretend(work, lease).catch((err) => log.error({ err }, "the work failed")),
  }),
);
await Promise.all(polls);

async function pretend({ work }: Work, lease: Lease): Promise<void> {
  if (work.case !== "action") throw new Error(`there is no ${work.case} in the bench`);
  const environment = { phase: EnvironmentPhase.RUNNING };
  // Like the built-in runner, only the end of a task waits for its reports.
  const reports = [
    lease.report({ environment, steps: [{ stepIndex: 0, state: State.RUNNING }] }),
    lease.report({ steps: [{ stepIndex: 0, state: State.DONE }] }, { mayWait: true }),
  ];
  await Promise.all([...reports, lease.finish({ outcome: Outcome.DONE })]);
}

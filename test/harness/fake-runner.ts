import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { expect } from "@jest/globals";
import { AgentWorkService, type StreamInputsResponse } from "#gen/runner/v1/agent_work_service_pb.js";
import { type Answer, post } from "./call.ts";
import type { ReachableServer } from "./server.ts";
import { readStream, type StreamReader } from "./stream-reader.ts";

/** A runner that reports only what a test tells it to. */
export interface FakeRunner {
  readonly runnerId: string;
  /** Its runner token. */
  readonly token: string;
  /** Id of its one environment class, which it offers when it registers. */
  readonly environmentClassId: string;
  /** Calls any operation of runner.v1 as this runner, such as `call("Heartbeat", {})`. */
  call(operation: string, body?: object): Promise<Answer>;
  /** Leases the works that are ready now, or within `wait`; by default at most one, without waiting. */
  lease(request?: object): Promise<Answer["body"][]>;
  /** Leases one work, waiting for it. */
  leaseOne(request?: object): Promise<Answer["body"]>;
  renew(work: Leased): Promise<Answer>;
  report(work: Leased, progress?: object): Promise<Answer>;
  finish(work: Leased, outcome?: string, more?: object): Promise<Answer>;
  credential(work: Leased, host: string): Promise<Answer>;
  /** Calls an operation on a lease of agent work, such as `agent("StartSubagent", work, { prompt })`. */
  agent(operation: string, work: Leased, body?: object): Promise<Answer>;
  /** Opens the stream of inputs of an agent execution. */
  inputs(work: Leased): StreamReader<StreamInputsResponse>;
}

/** The fields that identify leased work to the service. */
export type Leased = { readonly leaseId: string; readonly fence: string };

/** Settings of a fake runner. */
export interface FakeRunnerOptions {
  /** Token of an administrator of its organization; by default the server's first one. */
  readonly token?: string;
  readonly name?: string;
  /** True to report that it works on a user's own machine. */
  readonly local?: boolean;
}

/** Creates a runner and registers it, as its program would. */
export async function registerRunner(
  server: Pick<ReachableServer, "url" | "token">,
  { token: administrator = server.token, name = "A fake runner", local = false }: FakeRunnerOptions = {},
): Promise<FakeRunner> {
  const { exchangeToken } = await succeeded(
    post(server, "RunnerService/CreateRunner", { name }, administrator),
  );
  const introduction = {
    version: "1.0.0",
    systemDetails: "a test",
    local,
    environmentClass: { displayName: `Class of ${name}`, description: "for tests" },
  };
  const registered = await succeeded(post(server, "WorkService/Register", introduction, exchangeToken));
  return runnerOf(server, registered);
}

/** Returns a runner from the response to its registration. */
export function runnerOf(
  server: Pick<ReachableServer, "url" | "token">,
  {
    runnerId,
    token,
    environmentClassIds,
  }: { runnerId: string; token: string; environmentClassIds: string[] },
): FakeRunner {
  const call = (operation: string, body: object = {}) =>
    post(server, `WorkService/${operation}`, body, token);
  const transport = createConnectTransport({ baseUrl: `${server.url}/api`, httpVersion: "1.1" });
  const named = ({ leaseId, fence }: Leased, more: object) => ({ leaseId, fence, ...more });
  const lease = async (request: object = {}) =>
    (await succeeded(call("LeaseWork", { maxLeases: 1, wait: "0s", ...request }))).works;
  return {
    runnerId,
    token,
    environmentClassId: environmentClassIds[0] ?? "",
    call,
    lease,
    async leaseOne(request = {}) {
      const [work] = await lease({ wait: "60s", ...request });
      if (!work) throw new Error("the runner was given no work");
      return work;
    },
    renew: (work) => call("RenewLease", named(work, {})),
    report: (work, progress = {}) => call("ReportProgress", named(work, progress)),
    finish: (work, outcome = "OUTCOME_DONE", more = {}) =>
      call("FinishWork", named(work, { outcome, ...more })),
    credential: (work, host) => call("GetHostCredential", named(work, { host })),
    agent: (operation, work, body = {}) =>
      post(server, `AgentWorkService/${operation}`, named(work, body), token),
    inputs: ({ leaseId, fence }) =>
      readStream(token, (options) =>
        createClient(AgentWorkService, transport).streamInputs({ leaseId, fence: BigInt(fence) }, options),
      ),
  };
}

/** Runs an action to its end: its environment comes up and every step is done. */
export async function doAction(runner: FakeRunner, work: Answer["body"]): Promise<void> {
  await succeeded(runner.report(work, { environment: { phase: "ENVIRONMENT_PHASE_RUNNING" } }));
  for (const stepIndex of work.action.steps.keys()) {
    const steps = [
      { stepIndex, state: "STATE_RUNNING" },
      { stepIndex, state: "STATE_DONE" },
    ];
    await succeeded(runner.report(work, { steps }));
  }
  await succeeded(runner.finish(work));
}

/** Returns the body of a response and expects success. */
export async function succeeded(answer: Promise<Answer>): Promise<Answer["body"]> {
  const { status, body } = await answer;
  expect([status, body]).toEqual([200, body]);
  return body;
}

import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { v7 } from "uuid";
import type { StreamInputsResponse } from "#gen/runner/v1/agent_work_service_pb.js";
import { AgentForm } from "#gen/runner/v1/work_pb.js";
import { AgentOutputView } from "#gen/service/v1/agent_pb.js";
import { AgentService, type WatchAgentExecutionResponse } from "#gen/service/v1/agent_service_pb.js";
import { registerAgent } from "../../src/services/agent/agent-registry.ts";
import { type Answer, post } from "./call.ts";
import { type FakeRunner, registerRunner, succeeded } from "./fake-runner.ts";
import { withServerData } from "./member.ts";
import { type OrganizationWithPolicies, organizationWithPolicies } from "./policies.ts";
import type { ReachableServer } from "./server.ts";
import { readStream, type StreamReader } from "./stream-reader.ts";

/** An organization with its own runner and agent, so that no other test takes its work. */
export interface AgentFixture extends OrganizationWithPolicies {
  readonly server: ReachableServer;
  /** The token of an administrator. */
  readonly token: string;
  readonly runner: FakeRunner;
  readonly agentId: string;
}

export async function createAgentFixture(
  server: ReachableServer,
  { takesSettings = true }: { readonly takesSettings?: boolean } = {},
): Promise<AgentFixture> {
  const organization = await organizationWithPolicies(server, `home-${v7()}`);
  const { token } = organization.administrator;
  const runner = await registerRunner(server, { token });
  const { organizationId } = organization;
  const agentId = await withServerData(server, (store) =>
    registerAgent(store, {
      organizationId,
      name: "coder",
      description: "",
      command: "coder --lines",
      form: AgentForm.JSON_LINES,
      takesSettings,
      isDefault: true,
    }),
  );
  return { ...organization, server, token, runner, agentId };
}

/** An agent execution that the test leases as a runner and sends inputs to as a user. */
export interface LeasedAgentExecution {
  readonly id: string;
  readonly environmentId: string;
  /** The work as the server leased it. */
  readonly work: Answer["body"];
  /** Sends one input as the administrator, or with another token. */
  send(input: object, more?: object, token?: string): Promise<Answer>;
  /** Sends a text with this input id and expects success. */
  say(id: string, content?: string): Promise<void>;
  /** Sends a control input and expects success. */
  sendControlInput(controlInput: object): Promise<void>;
  get(): Promise<Answer["body"]>;
  /** Returns the queued inputs as ListAgentInputs shows them. */
  list(): Promise<Answer["body"][]>;
  /** Returns the ids of the queued inputs and the revision of the queue. */
  queue(): Promise<{ readonly ids: string[]; readonly revision: number }>;
  /** Returns the receipt of every input by its id, without the enum's prefix. */
  receipts(): Promise<Record<string, string>>;
  report(progress?: object): Promise<Answer>;
  /** Reports that the agent is waiting. */
  wait(interests?: readonly object[]): Promise<void>;
  /** Reports that the agent has received an input and is working on it. */
  begin(inputId: string): Promise<void>;
  inputs(): StreamReader<StreamInputsResponse>;
  watch(afterSequence?: number, view?: AgentOutputView): StreamReader<WatchAgentExecutionResponse>;
}

/** Starts an agent execution in a new environment, brings the environment up and leases the execution. */
export async function startLeasedAgentExecution(
  home: Pick<AgentFixture, "server" | "token" | "runner">,
  request: object = {},
): Promise<LeasedAgentExecution> {
  const { server, token, runner } = home;
  const { agentExecutionId } = await succeeded(post(server, "AgentService/StartAgent", request, token));
  const { agentExecution } = await succeeded(
    post(server, "AgentService/GetAgentExecution", { agentExecutionId }, token),
  );
  const [{ environmentId }] = agentExecution.status.usedEnvironments;
  await bringUp(runner, environmentId);
  return leasedAgentExecution(home, agentExecutionId, await leaseAgentExecution(runner, agentExecutionId));
}

/** Finishes environment work until the work of one environment is done. */
async function bringUp(runner: FakeRunner, environmentId: string): Promise<void> {
  for (;;) {
    const work = await runner.leaseOne({ kinds: ["WORK_KIND_ENVIRONMENT"] });
    await succeeded(runner.finish(work));
    if (work.environment.environment.id === environmentId) return;
  }
}

/** Leases agent work until it gets that of one execution; other leases are left as they are. */
export async function leaseAgentExecution(runner: FakeRunner, id: string): Promise<Answer["body"]> {
  for (;;) {
    const work = await runner.leaseOne({ kinds: ["WORK_KIND_AGENT"] });
    if (work.agent.agentExecution.id === id) return work;
  }
}

/** Wraps an execution that `home.runner` has leased. */
export function leasedAgentExecution(
  { server, token, runner }: Pick<AgentFixture, "server" | "token" | "runner">,
  id: string,
  work: Answer["body"],
): LeasedAgentExecution {
  const call = (operation: string, body: object = {}) =>
    post(server, `AgentService/${operation}`, { agentExecutionId: id, ...body }, token);
  const list = (body: object) =>
    succeeded(call("ListAgentInputs", { pagination: { pageSize: 100 }, ...body }));
  const send = (input: object, more: object = {}, by = token) =>
    post(server, "AgentService/SendToAgentExecution", { agentExecutionId: id, ...input, ...more }, by);
  const report = (progress: object = {}) => runner.agent("ReportAgent", work, progress);
  return {
    id,
    environmentId: work.agent.environment.id,
    work,
    send,
    async say(inputId, content = inputId) {
      await succeeded(send({ userInput: { id: inputId, inputs: [{ text: { content } }] } }));
    },
    async sendControlInput(controlInput) {
      await succeeded(send({ controlInput }));
    },
    get: async () => (await succeeded(call("GetAgentExecution"))).agentExecution,
    list: async () => (await list({})).inputs,
    async queue() {
      const { inputs, queueRevision } = await list({});
      return { ids: inputs.map((input: { id: string }) => input.id), revision: Number(queueRevision) };
    },
    async receipts() {
      const { inputs } = await list({ includePast: true });
      return Object.fromEntries(
        inputs.map((input: { id: string; receipt: string }) => [
          input.id,
          input.receipt.replace("AGENT_INPUT_RECEIPT_", ""),
        ]),
      );
    },
    report,
    async wait(interests = []) {
      await succeeded(report({ state: "STATE_WAITING", interests }));
    },
    async begin(inputId) {
      await succeeded(report({ seenInputIds: [inputId], state: "STATE_RUNNING" }));
    },
    inputs: () => runner.inputs(work),
    watch: (afterSequence = 0, view = AgentOutputView.UNSPECIFIED) =>
      readStream(token, (options) =>
        createClient(AgentService, transportTo(server)).watchAgentExecution(
          { agentExecutionId: id, afterSequence: BigInt(afterSequence), view },
          options,
        ),
      ),
  };
}

function transportTo({ url }: Pick<ReachableServer, "url">) {
  return createConnectTransport({ baseUrl: `${url}/api`, httpVersion: "1.1" });
}

/** Returns the ids of delivered inputs. */
export function idsOf(deliveries: readonly StreamInputsResponse[]): string[] {
  return deliveries.map(({ input }) => input?.id ?? "");
}

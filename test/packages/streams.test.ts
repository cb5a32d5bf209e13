import type {
  DescMessage,
  DescMethodServerStreaming,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { AgentOutputView } from "#gen/service/v1/agent_pb.js";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { ResourceType } from "#gen/service/v1/event_pb.js";
import { EventService } from "#gen/service/v1/event_service_pb.js";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import { type StreamActionLogsResponse, WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import {
  type ChartroomClient,
  Code,
  createClient,
  ErrorReason,
  reasonOf,
} from "../../packages/client/src/index.ts";
import { type Relay, startRelay } from "../clients/relay.ts";
import { collect } from "../harness/collect.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import {
  type AgentFixture,
  createAgentFixture,
  startLeasedAgentExecution,
} from "../harness/leased-agent-execution.ts";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";
import { startExecution, task } from "../harness/started-execution.ts";

let server: HostedServer;
let home: AgentFixture;
let relay: Relay;
let chartroom: ChartroomClient;

beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
  home = await createAgentFixture(server);
  relay = await startRelay(server.port);
  chartroom = createClient({ server: relay.url, token: home.token, retryForMs: Number.POSITIVE_INFINITY });
});
afterAll(async () => {
  await relay.stop();
  await stopAll();
});

/** Opens a stream through the relay, and counts how often it was interrupted. */
function watch<I extends DescMessage, O extends DescMessage>(
  method: DescMethodServerStreaming<I, O>,
  request: MessageInitShape<I>,
) {
  let interruptions = 0;
  const onInterrupted = () => (interruptions += 1);
  const stream = chartroom.watch(method, request, { onInterrupted });
  return {
    interruptions: () => interruptions,
    next: async (): Promise<MessageShape<O>> => {
      const { value, done } = await stream.next();
      if (done) throw new Error("the stream has ended");
      return value;
    },
    stream,
  };
}

async function createProject(): Promise<string> {
  const initializer = {
    specs: [
      { spec: { case: "git" as const, value: { remoteUri: "https://git.example.org/team/ship.git" } } },
    ],
  };
  const { project } = await chartroom.service(ProjectService).createProject({ initializer });
  return project?.id ?? "";
}

test("events go on behind the last one when the connection is cut, with none lost and none twice", async () => {
  const filters = [{ resourceType: ResourceType.PROJECT }];
  const events = watch(EventService.method.watchEvents, { afterSequence: 0n, resourceTypeFilters: filters });
  const created = [await createProject()];
  const found: string[] = [];
  const sequences: bigint[] = [];
  const readProject = async () => {
    for (;;) {
      const { resourceType, resourceId, sequence } = await events.next();
      sequences.push(sequence);
      if (resourceType === ResourceType.PROJECT) return found.push(resourceId);
    }
  };
  await readProject();
  relay.cut();
  created.push(await createProject(), await createProject());
  await readProject();
  await readProject();
  await events.stream.return();
  expect(found).toEqual(created);
  expect(events.interruptions()).toBe(1);
  expect(sequences).toEqual([...new Set(sequences)].toSorted((one, other) => Number(one - other)));
});

test.each([
  ["every block", AgentOutputView.UNSPECIFIED],
  ["the folded view", AgentOutputView.FOLDED],
])("the output of an agent goes on behind the last block, and ends with the run: %s", async (_, view) => {
  const run = await startLeasedAgentExecution(home);
  const report = (sequence: number) =>
    succeeded(run.report({ blocks: [{ sequence, text: { content: `block ${sequence}` } }] }));
  await report(1);
  const output = watch(AgentService.method.watchAgentExecution, { agentExecutionId: run.id, view });
  const sequences: bigint[] = [];
  const read = async () => {
    const { news } = await output.next();
    if (news.case === "block") sequences.push(news.value.sequence);
  };
  while (sequences.length < 1) await read();
  relay.cut();
  await report(2);
  while (sequences.length < 2) await read();
  expect(sequences).toEqual([1n, 2n]);
  await succeeded(home.call("AgentService/StopAgentExecution", { agentExecutionId: run.id }));
  await succeeded(run.report());
  await succeeded(home.runner.finish(run.work));
  const rest = await collect(output.stream);
  expect(rest.filter(({ news }) => news.case === "block")).toEqual([]);
  expect(output.interruptions()).toBe(1);
});

test("logs go on in the middle of a step, and begin again with another attempt", async () => {
  await startExecution({ url: server.url, token: home.token }, { steps: [task("one"), task("two")] });
  const work = await home.runner.leaseOne({ kinds: ["WORK_KIND_ACTION"] });
  const report = (by: typeof work, stepIndex: number, offset: number, text: string) => {
    const data = Buffer.from(text).toString("base64");
    return succeeded(home.runner.report(by, { logs: [{ stepIndex, offset: String(offset), data }] }));
  };
  const printed = ({ attempt, stepIndex, offset, data }: StreamActionLogsResponse) => [
    attempt,
    stepIndex,
    Number(offset),
    Buffer.from(data).toString(),
  ];
  await report(work, 0, 0, "abc");
  const logs = watch(WorkflowService.method.streamActionLogs, {
    workflowExecutionActionId: work.action.actionId,
    afterOffset: 1n,
    follow: true,
  });
  expect(printed(await logs.next())).toEqual([1, 0, 1, "bc"]);
  relay.cut();
  await report(work, 0, 3, "def");
  await report(work, 1, 0, "ghi");
  expect([printed(await logs.next()), printed(await logs.next())]).toEqual([
    [1, 0, 3, "def"],
    [1, 1, 0, "ghi"],
  ]);
  relay.cut();
  await succeeded(home.runner.finish(work, "OUTCOME_RELEASED"));
  const again = await home.runner.leaseOne({ kinds: ["WORK_KIND_ACTION"] });
  await report(again, 0, 0, "xyz");
  expect(printed(await logs.next())).toEqual([2, 0, 0, "xyz"]);
  await succeeded(home.runner.finish(again, "OUTCOME_FAILED"));
  expect(await collect(logs.stream)).toEqual([]);
  expect(logs.interruptions()).toBe(2);
});

test("a stream ends with the reason where the server refuses it, and quietly where its reader leaves", async () => {
  const unknown = { agentExecutionId: "01a21907-a772-74a3-916e-f7934320b611" };
  const refused = await collect(chartroom.watch(AgentService.method.watchAgentExecution, unknown)).catch(
    reasonOf,
  );
  expect(refused).toBe(ErrorReason.NOT_FOUND);
  const leaving = new AbortController();
  const events = chartroom.watch(
    EventService.method.watchEvents,
    { afterSequence: 0n },
    { signal: leaving.signal },
  );
  expect((await events.next()).done).toBe(false);
  leaving.abort();
  expect((await events.next()).done).toBe(true);
  const left = chartroom.watch(EventService.method.watchEvents, {}, { signal: AbortSignal.abort() });
  expect(await collect(left)).toEqual([]);
});

test("a stream is given up when the server cannot be reached for long enough", async () => {
  const away = await startRelay(server.port);
  const client = createClient({ server: away.url, token: home.token, retryForMs: 600 });
  const events = client.watch(EventService.method.watchEvents, { afterSequence: 0n });
  await events.next();
  await away.stop();
  await expect(collect(events)).rejects.toMatchObject({ code: Code.Unavailable });
});

test("a stream is given up that is always cut behind its first message, the run", async () => {
  const run = await startLeasedAgentExecution(home);
  let streams = 0;
  const cutting: typeof fetch = async (input, init) => {
    const res = await fetch(input, init);
    streams += 1;
    // Of a stream that is never given up.
    if (streams > 20) throw new Error("too many streams");
    const reader = res.body?.getReader();
    const first = await reader?.read();
    await reader?.cancel();
    return new Response(first?.value, res);
  };
  const client = createClient({ server: server.url, token: home.token, fetch: cutting, retryForMs: 600 });
  // An option without a value is that of the client.
  const output = client.watch(
    AgentService.method.watchAgentExecution,
    { agentExecutionId: run.id },
    { retryForMs: undefined as never },
  );
  await expect(collect(output)).rejects.toMatchObject({ code: Code.Unavailable });
});

test("a stream of another operation is not resumed", async () => {
  const method = { ...EventService.method.watchEvents, name: "WatchOthers" };
  await expect(chartroom.watch(method, {}).next()).rejects.toThrow(
    "WatchOthers returns no stream that resumes",
  );
});

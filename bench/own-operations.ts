import { post } from "../test/harness/call.ts";
import { startServer, stopAll, type TestServer } from "../test/harness/server.ts";
import { openAgentSite } from "./agent-site.ts";
import type { Case } from "./cases.ts";
import type { Load } from "./load/load.ts";
import type { LoadRequest } from "./load/task.ts";
import { threadsMs } from "./machine.ts";
import type { Options } from "./options.ts";
import { type Measures, measuresKey, tell } from "./rounds.ts";

const CONNECTIONS = 32;

/** Maximum number of queued inputs of a run (contract, SendToAgentExecution). */
const QUEUED_AT_MOST = 50;

/** Operations without a peer, since nothing comparable does the same. */
export const OWN_CASES: readonly Pick<Case, "name" | "title" | "peers" | "connections">[] = [
  {
    name: "start-workflow",
    title: "StartWorkflow, durable, of one action; no runner takes it",
    peers: ["ours"],
    connections: CONNECTIONS,
  },
  {
    name: "send-input",
    title: "SendToAgentExecution, durable, to runs that wait for a place on a runner",
    peers: ["ours"],
    connections: CONNECTIONS,
  },
];

/** Measures these operations on separate servers, with a fixed number of requests per round. */
export async function measureOwn(load: Load, options: Options, measures: Measures): Promise<void> {
  const isAsked = (name: string) => options.cases.length === 0 || options.cases.includes(name);
  if (options.only.length > 0 && !options.only.includes("ours")) return;
  if (isAsked("start-workflow")) await startWorkflows(load, options, measures);
  if (isAsked("send-input")) await sendInputs(load, options, measures);
}

async function startWorkflows(load: Load, options: Options, measures: Measures): Promise<void> {
  const server = await startServer({ args: ["--rate-limits", "off"] });
  const { body } = await post(server, "WorkflowService/CreateWorkflow", {
    name: "Bench",
    triggers: [
      {
        manual: {},
        context: { repositories: { repositoryUrls: { repoUrls: ["https://git.example.org/a/b"] } } },
      },
    ],
    action: { limits: { maxParallel: 1, maxTotal: 1 }, steps: [{ task: { command: "true" } }] },
  });
  const operation = "WorkflowService/StartWorkflow";
  const requests = [{ operation, body: JSON.stringify({ workflowId: body.workflow.id }) }];
  const rounds = options.isQuick ? 1 : options.rounds;
  const amount = options.isQuick ? 200 : 1_000;
  for (let round = -1; round < rounds; round++) {
    await measure("start-workflow", server, load, requests, amount, round, measures);
  }
  await server.stop();
  await stopAll();
}

async function sendInputs(load: Load, options: Options, measures: Measures): Promise<void> {
  const site = await openAgentSite(1, "info");
  const rounds = options.isQuick ? 1 : options.rounds;
  const runs = options.isQuick ? 8 : 40;
  for (let round = -1; round < rounds; round++) {
    const requests: LoadRequest[] = [];
    for (let run = 0; run < runs; run++) {
      const { agentExecutionId } = await site.call("AgentService/StartAgent", {});
      for (let input = 0; input < QUEUED_AT_MOST; input++) {
        const userInput = { id: `m${input}`, inputs: [{ text: { content: "Look at the tests that fail" } }] };
        requests.push({
          operation: "AgentService/SendToAgentExecution",
          body: JSON.stringify({ agentExecutionId, userInput }),
        });
      }
    }
    await measure("send-input", site.server, load, requests, requests.length, round, measures);
  }
  await site.close();
}

/** Measures a round; the round before the first one is a warm-up. */
async function measure(
  name: string,
  server: TestServer,
  load: Load,
  requests: readonly LoadRequest[],
  amount: number,
  round: number,
  measures: Measures,
): Promise<void> {
  const { url, token } = server;
  const before = threadsMs(server.process.pid);
  const task = { form: "json", url, token, connections: CONNECTIONS, requests, seconds: 0, amount } as const;
  const result = await load.run(task);
  const spentMs = threadsMs(server.process.pid) - before;
  if (result.failed > 0) throw new Error(`${result.failed} of ${amount} requests of ${name} failed`);
  if (round < 0) return;
  const measured = {
    perSecond: (result.answered / result.tookMs) * 1000,
    processorUs: (spentMs * 1000) / result.answered,
    p50Ms: result.p50Ms,
    p99Ms: result.p99Ms,
  };
  const key = measuresKey(name, "ours");
  measures.set(key, [...(measures.get(key) ?? []), measured]);
  tell(round, key, measured);
}

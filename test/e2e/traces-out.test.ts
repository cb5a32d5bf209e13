import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { spanIdOf, stepSpanId } from "../../src/domain/trace/trace-context.ts";
import { post } from "../harness/call.ts";
import { type EventReceiver, startEventReceiver } from "../harness/event-receiver.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { bareRepository } from "../harness/git-repository.ts";
import { startRegisteredHostedRunner, stopRunners } from "../harness/runner-process.ts";
import { type ScmHost, startScmHost } from "../harness/scm-host.ts";
import { type HostedServer, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";
import { addWorkflow, executionsOf } from "../harness/webhook.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const CALLER = { traceparent: `00-${TRACE}-b7ad6b7169203331-01` };

let receiver: EventReceiver;
let host: ScmHost;
let server: HostedServer;
beforeAll(async () => {
  [receiver, host] = await Promise.all([startEventReceiver(), startScmHost({ kind: "github" })]);
  const args = ["--allow-private-remotes", "--plain-http-hosts", host.host];
  server = await startHostedServer({ args: [...args, "--webhook-private-hosts", receiver.host] });
  const { runnerId } = await startRegisteredHostedRunner(server, { args });
  const source = "HOST_AUTHENTICATION_TOKEN_SOURCE_PAT";
  const request = { runnerId, host: host.host, token: host.token, source };
  await succeeded(post(server, "RunnerConfigurationService/CreateHostAuthenticationToken", request));
});
afterAll(async () => {
  await stopRunners();
  await stopAll();
  await Promise.all([host.stop(), receiver.stop()]);
});

/** Starts a workflow over what a search at the host finds, in the caller's trace. */
async function start(headers: Readonly<Record<string, string>>) {
  const repository = bareRepository(temporaryFolder(), { "a.txt": "one\n" });
  repository.git("config", "http.receivepack", "true");
  host.addRepository("fleet/ship", repository.folder);
  const context = { repositories: { repoSelector: { repoSearchString: "ship", scmHost: host.host } } };
  const branch = `b${headers.traceparent?.length ?? 0}`;
  const pullRequest = { title: "Add b", description: "It was missing.", branch };
  const { id } = await addWorkflow(server, {
    triggers: [{ manual: {}, context }],
    action: {
      limits: { maxParallel: 1, maxTotal: 1 },
      steps: [{ task: { command: "echo two > b.txt" } }, { pullRequest }],
    },
  });
  const before = host.requests.length;
  await succeeded(post(server, "WorkflowService/StartWorkflow", { workflowId: id }, server.token, headers));
  const [execution] = await until(
    () => executionsOf(server, id),
    ([each]) => each?.status.phase === "WORKFLOW_EXECUTION_PHASE_COMPLETED",
  );
  expect(execution.status).toMatchObject({ failures: [], doneActionCount: 1 });
  const listed = { filter: { workflowExecutionIds: [execution.id] } };
  const { body } = await post(server, "WorkflowService/ListWorkflowExecutionActions", listed);
  /** What the host got for it since, once it was asked to read the pull request. */
  const asked = () =>
    until(
      () => host.requests.slice(before),
      (requests) => requests.some(({ method, target }) => method === "GET" && /\/pulls\/\d+/.test(target)),
    );
  return { execution, actionId: body.workflowExecutionActions[0].id as string, asked };
}

const subscribe = (path: string) =>
  succeeded(
    post(server, "EventSubscriptionService/CreateEventSubscription", {
      name: "Executions",
      url: receiver.url(path),
      eventKinds: ["workflow_execution.*", "workflow.created"],
    }),
  );

test("what a traced execution asks of a host, and the events about it, carry its trace", async () => {
  await subscribe("/traced");
  const { execution, actionId, asked } = await start(CALLER);
  const ofExecution = `00-${TRACE}-${spanIdOf(execution.id)}-01`;
  const requests = await asked();
  const sentTo = (path: RegExp, method = "GET") => [
    ...new Set(
      requests
        .filter((each) => each.method === method && path.test(each.target))
        .map(({ headers }) => headers.traceparent),
    ),
  ];
  expect(sentTo(/^\/api\/v3\/search\//)).toEqual([ofExecution]);
  expect(sentTo(/\/pulls$/, "POST")).toEqual([`00-${TRACE}-${stepSpanId(actionId, 1)}-01`]);
  expect(sentTo(/\/pulls\/\d+/)).toEqual([ofExecution]);
  const events = await receiver.arrived("/traced", 3);
  const kindOf = ({ body }: { readonly body: string }) => JSON.parse(body).type as string;
  const told = events.map((each) => [kindOf(each), each.headers.traceparent]);
  expect(told.filter(([kind]) => kind?.startsWith("workflow_execution."))).toEqual(
    told.slice(1).map(([kind]) => [kind, ofExecution]),
  );
  // What is about nothing that has a trace is in none.
  expect(told[0]).toEqual(["workflow.created", undefined]);
});

test("what has no trace sends none", async () => {
  await subscribe("/untraced");
  const { asked } = await start({});
  const traced = [...(await asked()), ...(await receiver.arrived("/untraced", 3))].filter(
    ({ headers }) => headers.traceparent !== undefined,
  );
  expect(traced).toEqual([]);
});

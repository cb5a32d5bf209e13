import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { spanIdOf, stepSpanId } from "../../src/domain/trace/trace-context.ts";
import { post } from "../harness/call.ts";
import { type EventReceiver, startEventReceiver } from "../harness/event-receiver.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { bareRepository } from "../harness/git-repository.ts";
import { startRegisteredHostedRunner, stopRunners } from "../harness/runner-process.ts";
import { type ScmHost, startScmHost } from "../harness/scm-host.ts";
import { type HostedServer, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { type CollectedSpan, type SpanCollector, startSpanCollector } from "../harness/span-collector.ts";
import { until } from "../harness/until.ts";
import { addWorkflow, executionsOf } from "../harness/webhook.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const CALLER = { traceparent: `00-${TRACE}-b7ad6b7169203331-01` };

let receiver: EventReceiver;
let host: ScmHost;
let collector: SpanCollector;
/** One without a collector. */
let server: HostedServer;
/** One that sends spans. */
let tracing: HostedServer;
beforeAll(async () => {
  [receiver, host, collector] = await Promise.all([
    startEventReceiver(),
    startScmHost({ kind: "github" }),
    startSpanCollector(),
  ]);
  const args = ["--allow-private-remotes", "--plain-http-hosts", host.host];
  const serve = async (more: readonly string[]) => {
    const started = await startHostedServer({
      args: [...args, "--webhook-private-hosts", receiver.host, ...more],
    });
    const { runnerId } = await startRegisteredHostedRunner(started, { args });
    const source = "HOST_AUTHENTICATION_TOKEN_SOURCE_PAT";
    const request = { runnerId, host: host.host, token: host.token, source };
    await succeeded(post(started, "RunnerConfigurationService/CreateHostAuthenticationToken", request));
    return started;
  };
  server = await serve([]);
  tracing = await serve(["--otlp-traces-endpoint", collector.url]);
});
afterAll(async () => {
  await stopRunners();
  await stopAll();
  await Promise.all([host.stop(), receiver.stop()]);
  collector.close();
});

let repositories = 0;

/** Starts a workflow over what a search at the host finds, in the caller's trace. */
async function start(server: HostedServer, headers: Readonly<Record<string, string>>) {
  const repository = bareRepository(temporaryFolder(), { "a.txt": "one\n" });
  repository.git("config", "http.receivepack", "true");
  const name = `ship${++repositories}`;
  host.addRepository(`fleet/${name}`, repository.folder);
  const context = { repositories: { repoSelector: { repoSearchString: name, scmHost: host.host } } };
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

const subscribe = (server: HostedServer, path: string) =>
  succeeded(
    post(server, "EventSubscriptionService/CreateEventSubscription", {
      name: "Executions",
      url: receiver.url(path),
      eventKinds: ["workflow_execution.*", "workflow.created"],
    }),
  );

test("what a traced execution asks of a host, and the events about it, carry its trace", async () => {
  await subscribe(server, "/traced");
  const { execution, actionId, asked } = await start(server, CALLER);
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
  await subscribe(server, "/untraced");
  const { asked } = await start(server, {});
  const traced = [...(await asked()), ...(await receiver.arrived("/untraced", 3))].filter(
    ({ headers }) => headers.traceparent !== undefined,
  );
  expect(traced).toEqual([]);
});

test("what a server with a collector asks of others has spans of its own, under those that ask", async () => {
  // The first event is about a workflow, which has no trace.
  receiver.answer("/spans", { status: 204 }, { status: 503 });
  await subscribe(tracing, "/spans?token=private");
  await subscribe(tracing, "/spans");
  const { execution, asked } = await start(tracing, CALLER);
  await asked();
  const sent = await receiver.arrived("/spans", 2);
  const headersOf = (requests: readonly { readonly headers: Readonly<Record<string, unknown>> }[]) =>
    requests.map(({ headers }) => String(headers.traceparent));
  const parent = spanIdOf(execution.id);
  const ofHosts = await until(
    () => sentTo(host.host),
    (spans) => spans.length > 2,
  );
  const failed = await until(
    () => sentTo(receiver.host).filter(({ hasFailed }) => hasFailed),
    ({ length }) => length > 0,
  );
  for (const span of [...ofHosts, ...failed]) {
    expect(span).toMatchObject({
      traceId: TRACE,
      parentSpanId: parent,
      name: span.attributes["http.request.method"],
    });
    expect(span.attributes["server.address"]).toBe("127.0.0.1");
    expect(span.end).toBeGreaterThanOrEqual(span.start);
  }
  // What was asked names the span of the request, so that the host's own spans are below it.
  expect(ofHosts.filter((span) => !headersOf(host.requests).includes(traceparentOf(span)))).toEqual([]);
  expect(ofHosts.map(({ attributes }) => attributes["http.response.status_code"])).toContain(200);
  expect(failed.map(({ name, attributes }) => [name, attributes])).toEqual([
    [
      "POST",
      {
        "http.request.method": "POST",
        "server.address": "127.0.0.1",
        "server.port": portOf(receiver.host),
        "http.response.status_code": 503,
        "error.type": "503",
      },
    ],
  ]);
  expect(headersOf(sent)).toEqual(expect.arrayContaining(failed.map(traceparentOf)));
  for (const hidden of ["private", "search", "fleet", "/spans", host.token, tracing.token])
    expect(collector.text()).not.toContain(hidden);
});

const portOf = (address: string) => Number(address.split(":")[1]);
const traceparentOf = ({ spanId }: CollectedSpan) => `00-${TRACE}-${spanId}-01`;
/** Returns the spans of requests to an address. */
const sentTo = (address: string) =>
  collector
    .spans()
    .filter(({ kind, attributes }) => kind === 3 && attributes["server.port"] === portOf(address));

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { spanIdOf, stepSpanId, traceIdOf } from "../../src/domain/trace/trace-context.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import { SYSTEM } from "../../src/store/store.ts";
import { addDefaultAgent } from "../harness/added-agent.ts";
import { post } from "../harness/call.ts";
import { bareRepository } from "../harness/git-repository.ts";
import { withServerData } from "../harness/member.ts";
import { startRegisteredHostedRunner, stopRunners } from "../harness/runner-process.ts";
import { ACP_AGENT, update } from "../harness/scripted-acp-agent.ts";
import { type HostedServer, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { type CollectedSpan, type SpanCollector, startSpanCollector } from "../harness/span-collector.ts";
import { until } from "../harness/until.ts";
import { addWorkflow, deliver, executionsOf, IN_HALF_A_DAY, OVER_REPOSITORY } from "../harness/webhook.ts";
import { hubSignature } from "../harness/webhook-signing.ts";

const CALLER = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" };
const traceparent = (traceId: string, flags = "01") => ({
  traceparent: `00-${traceId}-${CALLER.spanId}-${flags}`,
});
const RUN = Buffer.from('{"parameters":{}}');
/** The prompt of the agent: to call a tool. */
const PROMPT = [
  update({
    sessionUpdate: "tool_call",
    toolCallId: "t",
    title: "a private title",
    kind: "execute",
    status: "pending",
  }),
  update({ sessionUpdate: "tool_call_update", toolCallId: "t", status: "completed" }),
].join("\n");

let collector: SpanCollector;
let server: HostedServer;
beforeAll(async () => {
  collector = await startSpanCollector();
  server = await startHostedServer({ args: ["--otlp-traces-endpoint", collector.url] });
});
afterAll(async () => {
  await stopRunners();
  await stopAll();
  collector.close();
});

const ofTrace = (traceId: string) => collector.spans().filter((span) => span.traceId === traceId);
/** The names from a span to the first of those that the server sent, and what is above that. */
function pathOf(span: CollectedSpan | undefined, spans: readonly CollectedSpan[]): string[] {
  if (!span) return [];
  const parent = spans.find(({ spanId }) => spanId === span.parentSpanId);
  return [span.name, ...(parent ? pathOf(parent, spans) : [span.parentSpanId])];
}

describe("a trace", () => {
  test("reaches from a webhook over its execution to an agent's call of a tool", async () => {
    const folder = temporaryFolder();
    const agent = `printf %s "$TRACEPARENT" > ${folder}/agent; exec "$0" "$@"`;
    await addDefaultAgent(server, "scripted", "acp", ["sh", "-c", agent, process.execPath, ACP_AGENT, "{}"]);
    const runner = await startRegisteredHostedRunner(server);
    const { url } = bareRepository(temporaryFolder(), { "a.txt": "one\n" });
    const context = { repositories: { repositoryUrls: { repoUrls: [url] } } };
    const steps = [
      { task: { command: `printf %s "$TRACEPARENT" > ${folder}/task` } },
      { agent: { prompt: PROMPT } },
    ];
    const { id, secret } = await addWorkflow(server, {
      name: "a private name",
      triggers: [{ manual: {}, context }],
      action: { limits: { maxParallel: 1, maxTotal: 1 }, steps },
    });
    const { traceId } = CALLER;
    const answer = await deliver(server, id, RUN, { ...hubSignature(secret, RUN), ...traceparent(traceId) });
    expect([answer.status, answer.header.get("x-trace-id")]).toEqual([202, traceId]);
    const [execution] = await until(
      () => executionsOf(server, id),
      ([each]) => /COMPLETED|STOPPED/.test(each?.status.phase),
    );
    expect(execution.status).toMatchObject({ failures: [], doneActionCount: 1 });
    const requestId = answer.header.get("x-request-id") ?? "";
    expect(execution.metadata.trace).toEqual({ traceId, parentSpanId: spanIdOf(requestId), sampled: true });
    const names = [
      "webhook",
      "execution",
      "action",
      "step task",
      "step agent",
      "agent run",
      "turn",
      "tool call",
    ];
    const spans = await until(
      () => ofTrace(traceId),
      (found) => names.every((name) => found.some((span) => span.name === name)),
    );
    expect(spans.map(({ name }) => name).sort()).toEqual(names.toSorted());
    const named = (name: string) => spans.find((span) => span.name === name);
    expect(pathOf(named("tool call"), spans)).toEqual([
      ...["tool call", "turn", "agent run", "step agent", "action", "execution", "webhook"],
      CALLER.spanId,
    ]);
    expect(pathOf(named("step task"), spans).slice(0, 2)).toEqual(["step task", "action"]);
    for (const span of spans) {
      expect(span.end).toBeGreaterThanOrEqual(span.start);
      expect([span.hasFailed, span.kind]).toEqual([false, span.name === "webhook" ? 2 : 1]);
    }
    expect(named("tool call")?.attributes).toMatchObject({
      "chartroom.tool.kind": "execute",
      "chartroom.end": "done",
    });
    expect(named("execution")?.attributes).toMatchObject({
      "chartroom.execution.id": execution.id,
      "chartroom.workflow.id": id,
      "chartroom.end": "succeeded",
      "chartroom.actions.done": 1,
    });
    const actionId = String(named("action")?.attributes["chartroom.action.id"]);
    const agentId = String(named("agent run")?.attributes["chartroom.agent_execution.id"]);
    const read = (name: string) => readFileSync(join(folder, name), "utf8");
    expect([read("task"), read("agent")]).toEqual([
      `00-${traceId}-${stepSpanId(actionId, 0)}-01`,
      `00-${traceId}-${spanIdOf(agentId)}-01`,
    ]);
    expect(server.log().filter(({ trace }) => trace === traceId)).toMatchObject([
      { requestId, operation: "webhook" },
    ]);
    // What the others start waits for ever.
    await runner.stop();
    for (const hidden of ["private", "printf", secret, server.token, url])
      expect(collector.text()).not.toContain(hidden);
  });

  const start = async (headers: Readonly<Record<string, string>>) => {
    const { id, secret } = await addWorkflow(server);
    const answer = await deliver(server, id, RUN, { ...hubSignature(secret, RUN), ...headers });
    const [execution] = await executionsOf(server, id);
    return { id, trace: execution.metadata.trace, header: answer.header };
  };
  const cancel = async (workflowId: string) => {
    const [{ id }] = await executionsOf(server, workflowId);
    await post(server, "WorkflowService/CancelWorkflowExecution", { workflowExecutionId: id });
  };

  test("is the call's own where the caller names none, or a malformed one", async () => {
    for (const headers of [{}, { traceparent: "00-of-nothing" }]) {
      const { trace, header } = await start(headers);
      const requestId = header.get("x-request-id") ?? "";
      expect(trace).toEqual({
        traceId: traceIdOf(requestId),
        parentSpanId: spanIdOf(requestId),
        sampled: true,
      });
      expect(header.get("x-trace-id")).toBe(trace.traceId);
    }
  });

  test("is kept, and not sent, where the caller says so", async () => {
    const quiet = "1".repeat(32);
    const { id, trace, header } = await start(traceparent(quiet, "00"));
    expect([trace.traceId, trace.sampled, header.get("x-trace-id")]).toEqual([quiet, false, quiet]);
    await cancel(id);
    // What has ended is sent in the order of its end.
    const { id: other, trace: loud } = await start(traceparent("2".repeat(32)));
    await cancel(other);
    await until(
      () => ofTrace(loud.traceId),
      (spans) => spans.some(({ name }) => name === "execution"),
    );
    expect(ofTrace(quiet)).toEqual([]);
  });

  test("begins with the execution that a schedule starts", async () => {
    const time = { cronExpression: IN_HALF_A_DAY };
    const { id } = await addWorkflow(server, { triggers: [{ time, context: OVER_REPOSITORY }] });
    await withServerData(server, (store) =>
      store.write(SYSTEM, "test", ({ db, now }) =>
        builderOf(db)
          .updateTable("workflow_schedule")
          .set({ next_at: now - 24 * 3_600_000 })
          .where("workflow_id", "=", id)
          .execute(),
      ),
    );
    const [execution] = await until(
      () => executionsOf(server, id),
      ({ length }) => length > 0,
    );
    const traceId = traceIdOf(execution.id);
    expect(execution.metadata.trace).toEqual({ traceId, parentSpanId: "", sampled: true });
  });

  test("has what ends at another server than it began at, once", async () => {
    const { id, trace } = await start({});
    const [execution] = await executionsOf(server, id);
    await server.stop();
    const args = ["--otlp-traces-endpoint", collector.url];
    const next = await startHostedServer({ dataDir: server.dataDir, args });
    const operation = "WorkflowService/CancelWorkflowExecution";
    await post(next, operation, { workflowExecutionId: execution.id }, server.token);
    await next.stop();
    const spans = ofTrace(trace.traceId);
    expect(spans.map(({ name }) => name).sort()).toEqual(["action", "execution", "webhook"]);
    const ended = spans.find(({ name }) => name === "execution");
    expect(ended).toMatchObject({
      parentSpanId: trace.parentSpanId,
      start: Date.parse(execution.metadata.startedAt),
      attributes: { "chartroom.end": "stopped", "chartroom.actions.stopped": 1 },
    });
  });
});

test("a collector that refuses keeps no call waiting, and what it did not take is counted", async () => {
  const refusing = await startSpanCollector(400);
  const other = await startHostedServer({
    args: ["--otlp-traces-endpoint", refusing.url, "--metrics-address", "127.0.0.1:0"],
  });
  expect((await post(other, "ProjectService/ListProjects", {})).status).toBe(200);
  const { url } = other.log().find(({ msg }) => msg === "serving metrics") as { url: string };
  const dropped = /chartroom_spans_dropped_total\{chartroom_reason="export"\} ([1-9]\d*)/;
  const text = await until(
    async () => (await fetch(url)).text(),
    (found) => dropped.test(found),
  );
  expect(text).toContain("chartroom_spans_sent_total 0");
  await until(other.log, (lines) =>
    lines.some(({ level, msg }) => level === "warn" && /not sent/.test(String(msg))),
  );
  expect((await post(other, "ProjectService/ListProjects", {})).status).toBe(200);
  await other.stop();
  refusing.close();
});

test("a server that sends none passes on the trace of a caller, and begins none", async () => {
  const off = await startHostedServer();
  const { id, secret } = await addWorkflow(off);
  const { traceId, spanId } = CALLER;
  const named = await deliver(off, id, RUN, { ...hubSignature(secret, RUN), ...traceparent(traceId) });
  const again = Buffer.from('{"parameters": {}}');
  const plain = await deliver(off, id, again, hubSignature(secret, again));
  const [first, second] = await executionsOf(off, id);
  expect(named.header.get("x-trace-id")).toBe(traceId);
  expect(first.metadata.trace).toEqual({ traceId, parentSpanId: spanId, sampled: true });
  expect([plain.header.get("x-trace-id"), second.metadata.trace]).toEqual([null, undefined]);
});

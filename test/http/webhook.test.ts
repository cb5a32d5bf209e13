import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createListener, type Listener } from "../../src/http/connection/listener.ts";
import type { AccessLine } from "../../src/http/dispatch/middleware.ts";
import { createMiddleware } from "../../src/http/dispatch/middleware.ts";
import { createWebhookDispatch } from "../../src/http/dispatch/webhook.ts";
import { OutputBudget } from "../../src/http/output/output-budget.ts";
import { createAdmission } from "../../src/rpc/access/admission.ts";
import { createAuthentication } from "../../src/rpc/access/authentication.ts";
import { createReadiness } from "../../src/rpc/health.ts";
import { PASSED_ON } from "../../src/tracing/call-traces.ts";
import { openTestStore, type TestStore } from "../harness/test-store.ts";
import { REPOSITORY, triggeredWorkflows } from "../services/workflow/triggered-workflow.ts";
import { answerOf, connectHttp2, open } from "./http2-client.ts";
import { connectRaw } from "./raw-client.ts";

/** A body may bring nothing for this long, of a time that passes only where a test says so. */
const IDLE_MS = 200;
let passedMs = 0;
/** Held of all bodies together. */
const MAX_HELD_BYTES = 1_000;

let testStore: TestStore;
let listener: Listener;
const WIDE = { connectionBytes: 1e9, callerBytes: 1e9, totalBytes: 1e9, stallMs: 1e9 };
let port: number;
let path: string;
let secret: string;
let ledger: () => Promise<readonly unknown[]>;
const lines: AccessLine[] = [];
const faults: unknown[] = [];

beforeAll(async () => {
  testStore = openTestStore();
  const { store, keys, clock, newId } = testStore;
  const own = triggeredWorkflows(testStore, await testStore.createOrganization("harbour"));
  const workflowId = await own.create([{ trigger: { case: "manual", value: {} }, context: REPOSITORY }]);
  ({ secret } = await own.operations.getWorkflowWebhookSecret({ workflowId }));
  path = `/workflows/${workflowId}/webhooks`;
  ledger = () => own.ledger(workflowId);
  const now = () => clock.now;
  const report = (error: unknown) => void faults.push(error);
  const readiness = createReadiness(
    () => undefined,
    () => [],
  );
  const webhook = createWebhookDispatch({
    store,
    keys,
    now,
    admission: createAdmission(
      createAuthentication({ store, keys, now, onUpdateFailure: report }),
      readiness,
    ),
    limits: { admit: () => undefined },
    report,
    onRecordFailure: report,
    maxHeldBytes: MAX_HELD_BYTES,
  });
  listener = createListener({
    host: "127.0.0.1",
    port: 0,
    limits: { bodyIdleMs: IDLE_MS, checkIntervalMs: 20, now: () => passedMs },
    handle: createMiddleware({
      dispatch: () => Promise.reject(new Error("an operation was called")),
      webhook,
      signIn: () => Promise.reject(new Error("somebody signed in")),
      console: () => Promise.reject(new Error("a page was asked for")),
      reference: () => Promise.reject(new Error("the reference was asked for")),
      scim: () => Promise.reject(new Error("a provider asked")),
      mcp: () => Promise.reject(new Error("an agent asked")),
      probes: { readiness, version: "0.0.0" },
      corsOrigins: new Set(),
      clientAddress: (peer) => peer,
      limits: { ofAddress: () => undefined, noteRefusal() {} },
      newId,
      budget: new OutputBudget(WIDE, () => {}),
      measures: { begin() {}, end() {} },
      traces: PASSED_ON,
      log: (line) => void lines.push(line),
    }),
  });
  ({ port } = await listener.listen());
});
afterAll(async () => {
  await listener.close();
  await testStore.close();
});

const head = (length: number) =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nX-Gitlab-Token: ${secret}\r\nContent-Length: ${length}\r\n\r\n`;
const RUN = '{"parameters":{}}';

test("a body that comes too slowly is cut, over both protocols, and starts nothing", async () => {
  const time = setInterval(() => {
    passedMs += 10;
  }, 10);
  const client = await connectRaw(port);
  client.send(head(RUN.length) + RUN.slice(0, 5));
  expect((await client.closed).text).toMatch(/^HTTP\/1.1 408 .*too slowly/s);
  const session = await connectHttp2(port);
  const stream = open(session, path, { "x-gitlab-token": secret });
  const answer = answerOf(stream);
  stream.write(RUN.slice(0, 5));
  expect((await answer).status).toBe(408);
  clearInterval(time);
  session.destroy();
  expect(await ledger()).toEqual([]);
});

test("a body that breaks off starts nothing, though what came would be valid", async () => {
  const client = await connectRaw(port);
  const before = lines.length;
  client.send(head(RUN.length + 1) + RUN);
  client.socket.end();
  await client.closed;
  while (lines.length === before) await new Promise(setImmediate);
  expect(lines.at(-1)).toMatchObject({ operation: "webhook", code: "canceled" });
  expect(await ledger()).toEqual([]);
});

test("one that comes in time, byte by byte, is taken", async () => {
  const client = await connectRaw(port);
  client.send(head(RUN.length));
  for (const byte of RUN) {
    client.send(byte);
    await new Promise(setImmediate);
  }
  expect(await client.until("STARTED")).toMatch(/^HTTP\/1.1 202 /);
  client.socket.destroy();
  expect(await ledger()).toHaveLength(1);
  expect(faults).toEqual([]);
});

test("of bodies that are too much together the one that began first gives way, and room is made again", async () => {
  const body = `{"padding":"${"x".repeat(600)}"}`;
  const slow = await connectRaw(port);
  slow.send(head(body.length) + body.slice(0, -1));
  const answered = slow.until("too many deliveries");
  for (let sent = 0, isAnswered = false; !isAnswered || sent < 3; sent++) {
    const client = await connectRaw(port);
    client.send(head(body.length) + body);
    expect(await client.until("STARTED")).toMatch(/^HTTP\/1.1 202 /);
    client.socket.destroy();
    isAnswered = await Promise.race([
      answered.then(() => true),
      new Promise<false>((next) => setImmediate(next, false)),
    ]);
  }
  expect(await answered).toMatch(/^HTTP\/1.1 503 .*send it again/s);
  slow.socket.destroy();
  const alone = `{"padding":"${"x".repeat(MAX_HELD_BYTES)}"}`;
  const large = await connectRaw(port);
  large.send(head(alone.length) + alone);
  expect(await large.until("too many deliveries")).toMatch(/^HTTP\/1.1 503 /);
  large.socket.destroy();
});

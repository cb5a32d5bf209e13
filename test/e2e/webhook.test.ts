import { createHmac } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { NOTHING_ASKED } from "../../src/domain/webhook-reading.ts";
import { SYSTEM } from "../../src/store/store.ts";
import { type Answer, post, reasonOf } from "../harness/call.ts";
import { besideServer } from "../harness/member.ts";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";
import {
  addWorkflow,
  deliver,
  executionsOf,
  ledgerOf,
  MANUAL,
  OVER_REPOSITORY,
  verdictsOf,
} from "../harness/webhook.ts";
import { hubSignature, standardSignature } from "../harness/webhook-signing.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(stopAll);

const RUN = Buffer.from('{"parameters":{}}');
const seconds = () => Math.floor(Date.now() / 1000);
const standard = (secret: string, timestamp = seconds(), id = `msg_${v7()}`, body = RUN) =>
  standardSignature(secret, body, { id, timestamp });

/** What an answer says besides when it was given, and to which request. */
function lasting({ status, header, body }: Answer) {
  const headers = Object.fromEntries(
    [...header].filter(([name]) => !["date", "x-request-id"].includes(name)),
  );
  return { status, headers, body };
}

describe("a delivery that is signed", () => {
  test.each([
    ["with X-Hub-Signature-256", (secret: string) => hubSignature(secret, RUN)],
    ["with X-Gitlab-Token", (secret: string) => ({ "x-gitlab-token": secret })],
    ["as Standard Webhooks say", (secret: string) => standard(secret)],
  ])("%s starts the manual trigger's context", async (_, sign) => {
    const { id, secret } = await addWorkflow(server);
    const answer = await deliver(server, id, RUN, sign(secret));
    const [execution] = await executionsOf(server, id);
    const [entry] = await ledgerOf(server, id);
    expect([answer.status, answer.body]).toEqual([
      202,
      {
        verdicts: [
          {
            triggerEventId: entry.id,
            verdict: "TRIGGER_VERDICT_STARTED",
            reason: "",
            triggerIndex: 0,
            workflowExecutionId: execution.id,
          },
        ],
      },
    ]);
    expect(entry).toMatchObject({
      source: "SOURCE_WEBHOOK",
      workflowExecutionId: execution.id,
      triggerIndex: 0,
    });
    expect(execution.spec.trigger).toMatchObject({ manual: {}, context: OVER_REPOSITORY });
    expect(execution.metadata.creator).toEqual(execution.metadata.executor);
  });

  test("carries parameters into the steps", async () => {
    const steps = [{ task: { command: "echo {{ .Parameters.branch }}" } }];
    const { id, secret } = await addWorkflow(server, {
      triggers: [MANUAL],
      action: { limits: { maxParallel: 1, maxTotal: 1 }, steps },
    });
    const run = (body: object) => {
      const bytes = Buffer.from(JSON.stringify(body));
      return deliver(server, id, bytes, hubSignature(secret, bytes));
    };
    expect(verdictsOf(await run({ parameters: { branch: "$(id)" }, sender: "me" }))).toEqual([
      202,
      "STARTED",
    ]);
    const refused = await run({ parameters: {} });
    expect(verdictsOf(refused)).toEqual([200, "REFUSED"]);
    expect(refused.body.verdicts[0].reason).toContain("branch");
    expect(await executionsOf(server, id)).toHaveLength(1);
  });
});

describe("a delivery that starts nothing says why", () => {
  const answerTo = async (fields: object | undefined, body: string | Buffer, headers = {}) => {
    const { id, secret } = await addWorkflow(server, fields && { ...fields });
    const bytes = Buffer.from(body);
    const answer = await deliver(server, id, bytes, { ...hubSignature(secret, bytes), ...headers });
    const [entry, ...others] = await ledgerOf(server, id);
    expect(others).toEqual([]);
    expect(answer.body.verdicts).toEqual([
      { triggerEventId: entry.id, verdict: entry.verdict, reason: entry.reason, workflowExecutionId: "" },
    ]);
    return [...verdictsOf(answer), entry.reason];
  };

  test.each(["", "null", "[]", '{"zen":"Keep it simple"}', '"parameters"'])(
    "%s asks for nothing",
    async (body) => {
      expect(await answerTo(undefined, body)).toEqual([200, "NO_MATCH", NOTHING_ASKED]);
    },
  );

  test.each([
    ["{", "the body is not JSON"],
    ["payload=%7B%7D", "the body is not JSON"],
    [Buffer.of(0x7b, 0x22, 0xff, 0x22, 0x7d), "the body is not UTF-8"],
    ['{"parameters":[]}', "parameters must be a JSON object"],
    ['{"parameters":{"key":1}}', "parameters.key must be a text"],
  ])("%s cannot be read", async (body, reason) => {
    expect(await answerTo(undefined, body)).toEqual([200, "REFUSED", expect.stringContaining(reason)]);
  });

  test("a ping of a new hook", async () => {
    const ping = { "x-github-event": "ping" };
    expect(await answerTo(undefined, '{"zen":"Keep it simple"}', ping)).toEqual([
      200,
      "NO_MATCH",
      "a ping: the hook is set up",
    ]);
  });

  test("a workflow without a manual trigger", async () => {
    const reason = expect.stringContaining("no manual trigger");
    expect(await answerTo({ triggers: [] }, RUN)).toEqual([200, "NO_MATCH", reason]);
  });

  test("a workflow that is disabled, until it is enabled", async () => {
    const { id, secret } = await addWorkflow(server);
    await post(server, "WorkflowService/UpdateWorkflow", { workflowId: id, disabled: true });
    const off = await deliver(server, id, RUN, hubSignature(secret, RUN));
    expect([...verdictsOf(off), off.body.verdicts[0].reason]).toEqual([
      200,
      "DISABLED",
      "the workflow is disabled",
    ]);
    await post(server, "WorkflowService/UpdateWorkflow", { workflowId: id, disabled: false });
    expect(verdictsOf(await deliver(server, id, RUN, hubSignature(secret, RUN)))).toEqual([202, "STARTED"]);
  });

  test("a workflow that is pending deletion", async () => {
    const { id, secret } = await addWorkflow(server);
    await deliver(server, id, RUN, hubSignature(secret, RUN));
    await post(server, "WorkflowService/DeleteWorkflow", { workflowId: id });
    const off = await deliver(server, id, RUN, hubSignature(secret, RUN));
    expect([...verdictsOf(off), off.body.verdicts[0].reason]).toEqual([
      200,
      "DISABLED",
      "the workflow is pending deletion",
    ]);
  });
});

describe("a delivery that is not believed", () => {
  const OTHER_SECRET = `whsec_${Buffer.alloc(32, 1).toString("base64")}`;
  const bad: [name: string, sign: (secret: string) => Record<string, string>][] = [
    ["no signature", () => ({})],
    ["another secret", () => hubSignature(OTHER_SECRET, RUN)],
    ["another body", (secret) => hubSignature(secret, Buffer.from("{}"))],
    [
      "a signature by SHA-1",
      (secret) => ({
        "x-hub-signature": `sha1=${createHmac("sha1", secret).update(RUN).digest("hex")}`,
      }),
    ],
    ["a malformed signature", () => ({ "x-hub-signature-256": "sha256=" })],
    ["another token", () => ({ "x-gitlab-token": OTHER_SECRET })],
    ["an empty token", () => ({ "x-gitlab-token": "" })],
    ["a timestamp of 301 seconds ago", (secret) => standard(secret, seconds() - 301)],
    ["a timestamp 305 seconds ahead", (secret) => standard(secret, seconds() + 305)],
    ["a signature of another delivery", (secret) => ({ ...standard(secret), "webhook-id": "msg_other" })],
    [
      "a good signature and a bad one",
      (secret) => ({
        ...hubSignature(secret, RUN),
        "x-gitlab-token": OTHER_SECRET,
      }),
    ],
    ["no token after Bearer", () => ({ authorization: "Bearer" })],
    ["a token of nobody", () => ({ authorization: `Bearer cr_pat_${"a".repeat(36)}` })],
    [
      "a bad signature beside a good token",
      () => ({
        ...hubSignature(OTHER_SECRET, RUN),
        authorization: `Bearer ${server.token}`,
      }),
    ],
  ];

  test.each(bad)("%s gets the answer that an unknown workflow gets", async (_, sign) => {
    const { id, secret } = await addWorkflow(server);
    const answer = await deliver(server, id, RUN, sign(secret));
    expect([answer.status, reasonOf(answer)]).toEqual([401, "UNAUTHENTICATED"]);
    expect(answer.header.get("www-authenticate")).toMatch(/^Bearer/);
    for (const unknown of [v7(), "no-uuid", "%00", "a".repeat(2_000)]) {
      expect(lasting(await deliver(server, unknown, RUN, sign(secret)))).toEqual(lasting(answer));
    }
    expect(await executionsOf(server, id)).toEqual([]);
  });

  test("leaves one entry a minute, which tells neither signature nor body", async () => {
    const { id } = await addWorkflow(server);
    const header = hubSignature(OTHER_SECRET, RUN);
    const minute = () => Math.floor(Date.now() / 60_000);
    const first = minute();
    for (let attempt = 0; attempt < 20; attempt += 1) await deliver(server, id, RUN, header);
    let ledger = await ledgerOf(server, id);
    while (ledger.length === 0) ledger = await ledgerOf(server, id);
    // Where a minute ended meanwhile, the next one has an entry of its own.
    const most = minute() - first + 1;
    expect(ledger.length).toBeLessThanOrEqual(most);
    expect(ledger[0]).toMatchObject({
      verdict: "TRIGGER_VERDICT_BAD_SIGNATURE",
      source: "SOURCE_WEBHOOK",
      reason: "the signature was made with another secret, or for another body",
      workflowExecutionId: "",
    });
    expect(JSON.stringify(ledger)).not.toContain(header["x-hub-signature-256"]);
  });

  test("leaves another entry in the next minute", async () => {
    const { id } = await addWorkflow(server);
    await deliver(server, id, RUN);
    while ((await ledgerOf(server, id)).length === 0);
    await besideServer(server, (store) =>
      store.write(SYSTEM, "test", ({ db }) =>
        db
          .updateTable("workflow_trigger_event")
          .set({ dedupe_key: "bad_signature:0" })
          .where("workflow_id", "=", id)
          .execute(),
      ),
    );
    await deliver(server, id, RUN);
    while ((await ledgerOf(server, id)).length < 2);
  });

  test("at a workflow that is gone by now", async () => {
    const { id, secret } = await addWorkflow(server);
    await post(server, "WorkflowService/DeleteWorkflow", { workflowId: id });
    while ((await post(server, "WorkflowService/GetWorkflow", { workflowId: id })).status === 200);
    const gone = await deliver(server, id, RUN, hubSignature(secret, RUN));
    expect(lasting(gone)).toEqual(lasting(await deliver(server, v7(), RUN, hubSignature(secret, RUN))));
  });
});

describe("the timestamp of Standard Webhooks", () => {
  test.each([-290, 0, 290])("may be %p seconds from now", async (offset) => {
    const { id, secret } = await addWorkflow(server);
    const signed = standard(secret, seconds() + offset);
    expect(verdictsOf(await deliver(server, id, RUN, signed))).toEqual([202, "STARTED"]);
  });
});

test("after a rotation both secrets verify, and after a day the new one alone", async () => {
  const { id, secret: old } = await addWorkflow(server);
  const { body } = await post(server, "WorkflowService/RotateWorkflowWebhookSecret", { workflowId: id });
  const status = async (secret: string) => [
    (await deliver(server, id, RUN, hubSignature(secret, RUN))).status,
    (await deliver(server, id, RUN, { "x-gitlab-token": secret })).status,
    (await deliver(server, id, RUN, standard(secret))).status,
  ];
  expect(body.secret).not.toBe(old);
  expect([await status(body.secret), await status(old)]).toEqual([
    [202, 202, 202],
    [202, 202, 202],
  ]);
  await besideServer(server, (store) =>
    store.write(SYSTEM, "test", async ({ db, now }) => {
      const row = db.updateTable("workflow_secret").where("workflow_id", "=", id);
      const { previous_until } = await row
        .set((eb) => ({ previous_until: eb("previous_until", "-", 24 * 3_600_000) }))
        .returning("previous_until")
        .executeTakeFirstOrThrow();
      expect(now - (previous_until ?? 0)).toBeLessThan(60_000);
    }),
  );
  expect([await status(body.secret), await status(old)]).toEqual([
    [202, 202, 202],
    [401, 401, 401],
  ]);
});

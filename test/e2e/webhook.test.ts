import { createHmac } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { builderOf } from "../../src/store/query-builder.ts";
import { SYSTEM } from "../../src/store/store.ts";
import { type Answer, post, reasonOf } from "../harness/call.ts";
import { withServerData } from "../harness/member.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import {
  addWorkflow,
  deliver,
  executionsOf,
  ledgerOf,
  MANUAL,
  OVER_REPOSITORY,
  verdictsOf,
} from "../harness/webhook.ts";
import { GITHUB_PULL_REQUEST } from "../harness/webhook-payload.ts";
import { hubSignature, standardSignature } from "../harness/webhook-signing.ts";

let server: ReachableServer;
beforeAll(async () => {
  server = await startHostedServer();
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

describe("a delivery that names no host's event", () => {
  const sender = { zen: "Keep it simple", issue: { title: "$(id)", number: 7, draft: false, labels: [] } };

  test.each<[string, string, Record<string, string>?]>([
    ["without a body", ""],
    ["{}", "{}"],
    ["null", "null"],
    ["a list", "[]"],
    ["a sender's own JSON", JSON.stringify(sender)],
    ["a form's content type over JSON", "{}", { "content-type": "application/x-www-form-urlencoded" }],
  ])("starts the manual trigger: %s", async (_, body, headers = {}) => {
    const { id, secret } = await addWorkflow(server);
    const signed = hubSignature(secret, Buffer.from(body));
    expect(verdictsOf(await deliver(server, id, body, { ...signed, ...headers }))).toEqual([202, "STARTED"]);
    const [execution] = await executionsOf(server, id);
    expect([execution.spec.trigger.context, execution.status.warnings]).toMatchObject([OVER_REPOSITORY, []]);
  });

  test("gives declared parameters fields of its body, before their defaults and after its parameters", async () => {
    const prompt =
      "{{.Parameters.title}} {{.Parameters.number}} {{.Parameters.draft}} {{.Parameters.labels}}";
    const field = (key: string, more = {}) => ({
      key,
      payloadField: `issue.${key}`,
      defaultValue: "none",
      ...more,
    });
    const { id, secret } = await addWorkflow(server, {
      triggers: [{ manual: {}, context: { agent: { prompt } } }],
      parameters: ["title", "number", "draft", "labels"].map((key) => field(key)),
    });
    const promptOf = async (body: object | string) => {
      const bytes = Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
      await deliver(server, id, bytes, hubSignature(secret, bytes));
      return (await executionsOf(server, id)).at(-1).spec.trigger.context.agent.prompt;
    };
    expect(await promptOf(sender)).toBe("$(id) 7 false none");
    expect(await promptOf({ ...sender, parameters: { title: "given" } })).toBe("given 7 false none");
    expect(await promptOf({ issue: "text" })).toBe("none none none none");
    expect(await promptOf('{"issue":{"number":1234567890123456789}}')).toBe(
      "none 1234567890123456789 none none",
    );
    const { body } = await post(server, "WorkflowService/RedeliverWorkflowTriggerEvent", {
      triggerEventId: (await ledgerOf(server, id))[0].id,
    });
    expect(body.triggerEvents).toMatchObject([{ verdict: "TRIGGER_VERDICT_STARTED" }]);
    expect((await executionsOf(server, id)).at(-1).spec.trigger.context.agent.prompt).toBe(
      "$(id) 7 false none",
    );
    const long = Buffer.from(JSON.stringify({ issue: { title: "x".repeat(8_193) } }));
    const refused = await deliver(server, id, long, hubSignature(secret, long));
    expect([...verdictsOf(refused), refused.body.verdicts[0].reason]).toEqual([
      200,
      "REFUSED",
      "issue.title of the body, which gives title, must have at most 8192 characters",
    ]);
  });
});

describe("a delivery whose body is no JSON", () => {
  test.each<[string, string | Buffer, RegExp, Record<string, string>?]>([
    ["broken", "{", /^the body is not JSON/],
    [
      "a form",
      "payload=%7B%7D",
      /^the body is not JSON/,
      { "content-type": "application/x-www-form-urlencoded" },
    ],
    ["a form of a host's event", "payload=%7B%7D", /^the body is not JSON/, GITHUB_PULL_REQUEST],
    ["coloured lines of a terminal", "\u001b[32mINFO\u001b[0m up\n".repeat(60), /^the body is not JSON/],
    ["too deep", `${"[".repeat(101)}${"]".repeat(101)}`, /^the body nests deeper than 100 levels/],
    ["far too deep", "[".repeat(500_000) + "]".repeat(500_000), /^the body nests deeper than 100 levels/],
    ["not UTF-8", Buffer.of(0x7b, 0x22, 0xff, 0x22, 0x7d), /^the body is not UTF-8/],
  ])("is malformed, recorded in the ledger, and uses up no id: %s", async (_, body, reason, headers = {}) => {
    const { id, secret } = await addWorkflow(server);
    const signed = { ...hubSignature(secret, Buffer.from(body)), ...headers, "x-github-delivery": "one" };
    for (const count of [1, 2]) {
      const answer = await deliver(server, id, body, signed);
      expect([answer.status, reasonOf(answer)]).toEqual([400, "BODY_MALFORMED"]);
      expect(answer.body.message).toMatch(reason);
      const ledger = await ledgerOf(server, id);
      expect(ledger).toHaveLength(count);
      expect(ledger.at(-1)).toMatchObject({
        verdict: "TRIGGER_VERDICT_REFUSED",
        reason: answer.body.message,
      });
    }
    const good = { ...hubSignature(secret, RUN), "x-github-delivery": "one" };
    expect(verdictsOf(await deliver(server, id, RUN, good))).toEqual([202, "STARTED"]);
  });

  test.each([100, 101])("or nests %i levels deep: 100 are taken", async (depth) => {
    const { id, secret } = await addWorkflow(server);
    const body = Buffer.from("[".repeat(depth) + "]".repeat(depth));
    const answer = await deliver(server, id, body, hubSignature(secret, body));
    expect(answer.status).toBe(depth === 100 ? 202 : 400);
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

  test.each([
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

  test.each(["push", "pull_request"])(
    "an event %s with parameters, which is no start by hand",
    async (event) => {
      const answer = await answerTo(undefined, RUN, { "x-github-event": event });
      expect(answer.slice(0, 2)).toEqual([200, "NO_MATCH"]);
    },
  );

  test.each(["", "{}", '{"parameters":{}}'])("a workflow without a manual trigger, to %j", async (body) => {
    const reason = expect.stringContaining("no manual trigger");
    expect(await answerTo({ triggers: [] }, body)).toEqual([200, "NO_MATCH", reason]);
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
    expect(verdictsOf(await deliver(server, id, RUN, standard(secret)))).toEqual([202, "STARTED"]);
  });

  test("a workflow that is pending deletion", async () => {
    const { id, secret } = await addWorkflow(server);
    await deliver(server, id, RUN, standard(secret));
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
      "a bad signature next to a good token",
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
    await withServerData(server, (store) =>
      store.write(SYSTEM, "test", ({ db }) =>
        builderOf(db)
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
  let sent = 0;
  const status = async (secret: string) => {
    // A body of its own, since a signature of one counts once.
    sent += 1;
    const bytes = Buffer.from(JSON.stringify({ sent }));
    return [
      (await deliver(server, id, bytes, hubSignature(secret, bytes))).status,
      (await deliver(server, id, RUN, { "x-gitlab-token": secret })).status,
      (await deliver(server, id, RUN, standard(secret))).status,
    ];
  };
  expect(body.secret).not.toBe(old);
  expect([await status(body.secret), await status(old)]).toEqual([
    [202, 202, 202],
    [202, 202, 202],
  ]);
  await withServerData(server, (store) =>
    store.write(SYSTEM, "test", async ({ db, now }) => {
      const row = builderOf(db).updateTable("workflow_secret").where("workflow_id", "=", id);
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

import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type Answer, post, reasonOf } from "../harness/call.ts";
import { registerRunner, succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import {
  type AgentFixture,
  createAgentFixture,
  type LeasedAgentExecution,
  startLeasedAgentExecution,
} from "../harness/leased-agent-execution.ts";
import { addMember } from "../harness/member.ts";
import { decisionOf } from "../harness/policies.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";

/** The most that an image may have (contract, ImageInput.data). */
const MOST_IMAGE_BYTES = 4 * 1024 * 1024;
const PNG = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];

let server: ReachableServer;
let home: AgentFixture;
let run: LeasedAgentExecution;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
  home = await createAgentFixture(server);
});
afterAll(stopAll);

const refusal = (answer: Answer) => [answer.status, answer.body.code, reasonOf(answer)];
const text = (content: string, id = "") => ({ userInput: { id, inputs: [{ text: { content } }] } });
const image = (bytes: Buffer, mimeType = "image/png") => ({
  image: { data: bytes.toString("base64"), mimeType },
});
const png = (length: number) => Buffer.concat([Buffer.from(PNG), Buffer.alloc(length - PNG.length)]);

describe("an input", () => {
  beforeAll(async () => {
    run = await startLeasedAgentExecution(home);
  });

  test("is exactly one of its kinds", async () => {
    expect(refusal(await run.send({}))).toEqual([400, "invalid_argument", "CONSTRAINT_VIOLATED"]);
    const two = await run.send({ ...text("a"), controlInput: { compact: {} } });
    expect(two.body.code).toBe("invalid_argument");
  });

  test("joins the queue in its order, with who sent it and when", async () => {
    await run.say("first", "one");
    await run.say("second", "two");
    const inputs = await run.list();
    expect(inputs).toMatchObject([
      {
        id: "first",
        receipt: "AGENT_INPUT_RECEIPT_QUEUED",
        sender: { id: home.administrator.userId, principal: "PRINCIPAL_USER" },
        userInput: { id: "first", inputs: [{ text: { content: "one" } }] },
      },
      { id: "second" },
    ]);
    expect(Date.parse(inputs[0].createdAt)).toBeLessThanOrEqual(Date.now());
    expect((await run.queue()).revision).toBe(2);
  });

  test("with an id that the run has already is accepted and not stored again", async () => {
    await run.say("first", "another text");
    expect((await run.queue()).ids).toEqual(["first", "second"]);
    expect((await run.queue()).revision).toBe(2);
  });

  test("in the deprecated form is kept in the newer one", async () => {
    await succeeded(run.send({ userInput: { id: "old", text: { content: "hello" } } }));
    await succeeded(run.send({ userInput: { id: "older", ...image(png(64)) } }));
    const inputs = await run.list();
    expect(inputs.slice(2).map((each: Answer["body"]) => each.userInput.inputs)).toEqual([
      [{ text: { content: "hello" } }],
      [{ image: { data: "", mimeType: "image/png", dataRef: "" } }],
    ]);
    expect(inputs[2].userInput.text).toBeUndefined();
  });

  test("of a person keeps nothing that only integrations and runners note, whose limits hold yet", async () => {
    const noted = {
      id: "noted",
      createdAt: "2001-01-01T00:00:00Z",
      metadata: { source: "chat.example.org", modes: ["AGENT_MODE_SPEC"] },
      inputs: [{ image: { ...image(png(64)).image, dataRef: "s3://elsewhere" } }],
    };
    await succeeded(run.send({ userInput: noted }));
    const inputs = await run.list();
    const kept = inputs.at(-1).userInput;
    expect(kept.metadata).toBeUndefined();
    expect(kept.inputs).toEqual([{ image: { data: "", mimeType: "image/png", dataRef: "" } }]);
    expect(kept.createdAt).not.toBe(noted.createdAt);
    const long = { ...noted, id: "", metadata: { source: "x".repeat(254) } };
    expect(refusal(await run.send({ userInput: long }))[2]).toBe("CONSTRAINT_VIOLATED");
  });

  test("of the runner keeps them", async () => {
    const noted = {
      id: "by the runner",
      metadata: { source: "chat.example.org" },
      inputs: [{ image: { ...image(png(64)).image, dataRef: "s3://elsewhere" } }],
    };
    await succeeded(run.send({ userInput: noted }, {}, home.runner.token));
    const inputs = await run.list();
    expect(inputs.at(-1).userInput).toMatchObject({
      metadata: { source: "chat.example.org" },
      inputs: [{ image: { dataRef: "s3://elsewhere" } }],
    });
  });

  test.each([
    ["an override", "a\u202eb"],
    ["tag characters", "a\u{e0061}b"],
  ])("with %s is refused with the cleaned text", async (_, content) => {
    const answer = await run.send(text(content));
    expect(refusal(answer)).toEqual([400, "invalid_argument", "TEXT_DECEPTIVE"]);
    expect(answer.body.details[0].debug.metadata).toEqual({
      field: "userInput.inputs[0].text.content",
      cleaned: "ab",
    });
    const goal = await run.send({ controlInput: { goal: { set: { objective: content } } } });
    expect(reasonOf(goal)).toBe("TEXT_DECEPTIVE");
  });

  test("of right-to-left text passes", async () => {
    await run.say("hebrew", "\u200fשלום \u2067abc\u2069");
  });
});

describe("an image", () => {
  beforeAll(async () => {
    run = await startLeasedAgentExecution(home);
  });

  test.each([
    [MOST_IMAGE_BYTES - 1, 200],
    [MOST_IMAGE_BYTES, 200],
    [MOST_IMAGE_BYTES + 1, 400],
  ])("of %i bytes is answered %i", async (length, status) => {
    const answer = await run.send({ userInput: { inputs: [image(png(length))] } });
    expect(answer.status).toBe(status);
  });

  test("that is not of its type is refused", async () => {
    const gif = Buffer.from("GIF89a");
    for (const inputs of [[image(gif)], [{ text: { content: "see" } }, image(png(64), "image/jpeg")]]) {
      const answer = await run.send({ userInput: { inputs } });
      expect(refusal(answer)).toEqual([400, "invalid_argument", "VALUE_UNUSABLE"]);
      expect(answer.body.details[0].debug.metadata.field).toBe(
        `userInput.inputs[${inputs.length - 1}].image.data`,
      );
    }
    expect(reasonOf(await run.send({ userInput: image(gif) }))).toBe("VALUE_UNUSABLE");
  });

  test("reaches the runner as it was sent", async () => {
    const other = await startLeasedAgentExecution(home);
    const [first, second] = [png(70_000), Buffer.from([0xff, 0xd8, 0xff, 0xe0, 1, 2, 3])];
    const parts = [image(first), { text: { content: "and" } }, image(second, "image/jpeg")];
    await succeeded(other.send({ userInput: { inputs: parts } }));
    const [delivery] = await other.inputs().until(1);
    const message = delivery?.input?.input;
    const delivered =
      message?.case === "userInput" ? message.value.inputs.map(({ input }) => input.value) : [];
    expect(delivered).toMatchObject([
      { mimeType: "image/png" },
      { content: "and" },
      { mimeType: "image/jpeg" },
    ]);
    const data = delivered.flatMap((part) => (part && "data" in part ? [Buffer.from(part.data)] : []));
    expect(data).toEqual([first, second]);
  });
});

describe("policies", () => {
  test("bind on the settings and the modes of a turn, and on goals", async () => {
    const bound = await createAgentFixture(server);
    const held = await startLeasedAgentExecution(bound);
    await held.sendControlInput({ goal: { set: { objective: "before" } } });
    await bound.set({
      agentPolicy: {
        goalModeDisabled: true,
        allowedExtAgentReasoningEfforts: ["EXT_AGENT_REASONING_EFFORT_LOW"],
      },
    });
    const effort = (name: string) => ({
      extAgentSettings: { reasoningEffort: `EXT_AGENT_REASONING_EFFORT_${name}` },
    });
    const refused: [object, object, string][] = [
      [text("x"), effort("HIGH"), "agentPolicy.allowedExtAgentReasoningEfforts"],
      [text("x"), { turnOptions: { modes: ["AGENT_MODE_GOAL"] } }, "agentPolicy.goalModeDisabled"],
      [{ controlInput: { goal: { set: { objective: "x" } } } }, {}, "agentPolicy.goalModeDisabled"],
      [{ controlInput: { goal: { resume: {} } } }, {}, "agentPolicy.goalModeDisabled"],
    ];
    for (const [input, more, fieldPath] of refused) {
      const answer = await held.send(input, more);
      expect(refusal(answer)).toEqual([400, "failed_precondition", "POLICY_DENIED"]);
      expect(decisionOf(answer).fieldPath).toBe(fieldPath);
    }
    await succeeded(held.send(text("x", "fits"), effort("LOW")));
    // Other inputs ignore settings.
    await succeeded(held.send({ controlInput: { compact: {} } }, effort("HIGH")));
    // To end a goal stays allowed.
    await held.sendControlInput({ goal: { clear: {} } });
  });

  test("leave settings out for agents that take none", async () => {
    const plain = await createAgentFixture(server, { takesSettings: false });
    for (const [each, wanted] of [
      [home, 1],
      [plain, undefined],
    ] as const) {
      const held = await startLeasedAgentExecution(each);
      const more = {
        extAgentSettings: { serviceTier: "EXT_AGENT_SERVICE_TIER_FAST" },
        turnOptions: { modes: ["AGENT_MODE_PLANNING"] },
      };
      await succeeded(held.send(text("x", "m"), more));
      const [delivery] = await held.inputs().until(1);
      expect(delivery?.extAgentSettings?.serviceTier).toBe(wanted);
      expect(delivery?.turnOptions?.modes).toEqual([2]);
      const { spec, status } = await held.get();
      expect(JSON.stringify({ spec, status })).not.toContain("FAST");
    }
  });

  test("let the options of the first turn leave with it", async () => {
    const held = await startLeasedAgentExecution(home, { turnOptions: { modes: ["AGENT_MODE_SPEC"] } });
    await held.sendControlInput({ compact: {} });
    await held.say("first");
    await held.say("second");
    const inputs = held.inputs();
    const [order] = await inputs.until(1);
    expect(order?.turnOptions).toBeUndefined();
    await succeeded(held.report({ seenInputIds: [order?.input?.id], state: "STATE_WAITING" }));
    await inputs.until(2);
    await succeeded(held.report({ seenInputIds: ["first"] }));
    await held.wait();
    const deliveries = await inputs.until(3);
    expect(deliveries.slice(1).map(({ turnOptions }) => turnOptions?.modes)).toEqual([[4], undefined]);
  });
});

describe("who may send what", () => {
  beforeAll(async () => {
    run = await startLeasedAgentExecution(home);
  });

  test("is the creator and administrators, and nobody else in the organization", async () => {
    const other = await addMember(server, {
      organizationId: home.organizationId,
      email: `other-${run.id}@example.org`,
    });
    const mine = await startLeasedAgentExecution({ ...home, token: home.member.token });
    await succeeded(mine.send(text("x")));
    await succeeded(mine.send(text("x"), {}, home.token));
    for (const held of [mine, run]) {
      const answer = await held.send(text("x"), {}, other.token);
      expect(refusal(answer)).toEqual([404, "not_found", "NOT_FOUND"]);
    }
    const stranger = await registerRunner(server, { token: home.token });
    expect(reasonOf(await run.send(text("x"), {}, stranger.token))).toBe("NOT_FOUND");
    const foreign = await createAgentFixture(server);
    for (const token of [foreign.token, foreign.runner.token]) {
      expect(refusal(await run.send(text("x"), {}, token))).toEqual([404, "not_found", "NOT_FOUND"]);
    }
  });

  test("is only the runner for other agents and for the world around", async () => {
    const message = { payload: "done", type: "TYPE_COMPLETE", senderExecutionId: run.id };
    const wake = { interestId: "i", timer: {} };
    for (const input of [{ agentMessage: message }, { wakeEvent: wake }]) {
      expect(reasonOf(await run.send(input))).toBe("PERMISSION_DENIED");
    }
    expect(reasonOf(await run.send({ agentMessage: message }, {}, run.work.environmentToken))).toBe(
      "PERMISSION_DENIED",
    );
  });

  test("is an agent run that speaks through the runner, and hides nothing", async () => {
    const { token } = home.runner;
    const sibling = await startLeasedAgentExecution(home);
    const send = (senderExecutionId: string) =>
      run.send({ agentMessage: { payload: "news", type: "TYPE_UPDATE", senderExecutionId } }, {}, token);
    await succeeded(send(sibling.id));
    const foreign = await startLeasedAgentExecution(await createAgentFixture(server));
    const elsewhere = await registerRunner(server, { token: home.token, name: "elsewhere" });
    const { agentExecutionId: other } = await succeeded(
      post(server, "AgentService/StartAgent", { runnerId: elsewhere.runnerId }, home.token),
    );
    for (const sender of ["", "nobody", foreign.id, other]) {
      expect(refusal(await send(sender))).toEqual([400, "invalid_argument", "VALUE_UNUSABLE"]);
    }
    const hiding = { payload: "a\u202eb", senderExecutionId: sibling.id };
    const refused = await run.send({ agentMessage: hiding }, {}, token);
    expect(refusal(refused)).toEqual([400, "invalid_argument", "TEXT_DECEPTIVE"]);
    expect(JSON.stringify(refused.body)).toContain('"cleaned":"ab"');
    const inputs = await run.list();
    expect(inputs).toMatchObject([
      {
        sender: { id: home.runner.runnerId, principal: "PRINCIPAL_RUNNER" },
        agentMessage: { payload: "news", senderExecutionId: sibling.id },
      },
    ]);
  });

  test("is kept in the record, without what was said", async () => {
    const held = await startLeasedAgentExecution(home);
    await held.say("m", "a word of mine");
    await held.sendControlInput({ deleteQueuedMessage: { userInputId: "m" } });
    const { body } = await home.call("EventService/ListAuditLogs", {
      filter: { subjectIds: [held.id] },
      pagination: { pageSize: 2 },
    });
    expect(body.entries).toMatchObject([
      { reason: "deleteQueuedMessage", changes: [{ path: "queueRevision", before: "1", after: "2" }] },
      { reason: "userInput", changes: [{ path: "queueRevision", before: "0", after: "1" }] },
    ]);
    expect(JSON.stringify(body)).not.toContain("a word of mine");
  });
});

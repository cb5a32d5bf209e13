import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Webhook } from "standardwebhooks";
import { ApprovalOptionSchema, ApprovalOption_Kind as OptionKind } from "#gen/service/v1/approval_pb.js";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { askApproval } from "../../src/services/approval/approval-asking.ts";
import { OPERATOR } from "../../src/store/store.ts";
import { type Answer, post, reasonOf, repository } from "../harness/call.ts";
import { type EventReceiver, startEventReceiver } from "../harness/event-receiver.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import {
  type AgentFixture,
  createAgentFixture,
  startLeasedAgentExecution,
} from "../harness/leased-agent-execution.ts";
import { withServerData } from "../harness/member.ts";
import {
  type HostedServer,
  runCommand,
  runHostedCommand,
  startHostedServer,
  stopAll,
  temporaryFolder,
} from "../harness/server.ts";
import { storedTexts } from "../harness/stored-texts.ts";
import { until } from "../harness/until.ts";
import { ASKED } from "./world.ts";

const CANARY = "canary-of-an-address";

let receiver: EventReceiver;
let server: HostedServer;
beforeAll(async () => {
  receiver = await startEventReceiver();
  server = await startHostedServer({ args: [...LONG_LEASES, "--webhook-private-hosts", receiver.host] });
});
afterAll(async () => {
  await stopAll();
  await receiver.stop();
});

const call = (operation: string, body: object, token = server.token) =>
  succeeded(post(server, `EventSubscriptionService/${operation}`, body, token));
let made = 0;
/** A path at the receiver that no other test has. */
const newPath = () => `/${CANARY}/${made++}`;
async function subscribe(path: string, more: object = {}, token = server.token) {
  const request = { name: "Ships", url: receiver.url(path), eventKinds: ["project.created"], ...more };
  const { eventSubscription, secret } = await call("CreateEventSubscription", request, token);
  return { id: eventSubscription.id as string, secret: secret as string, eventSubscription };
}
const newProject = async (name: string): Promise<string> => {
  const initializer = repository("https://git.example.org/team/ship.git");
  return (await succeeded(post(server, "ProjectService/CreateProject", { name, initializer }))).project.id;
};
const ledger = async (eventSubscriptionId: string): Promise<Answer["body"][]> =>
  (await call("ListEventDeliveries", { eventSubscriptionId })).eventDeliveries;
/** Returns the newest entry of a ledger, once it has so many attempts. */
const attempted = async (id: string, attempts: number): Promise<Answer["body"]> => {
  const [entry] = await until(
    () => ledger(id),
    ([newest]) => (newest?.attempts.length ?? 0) >= attempts,
  );
  return entry;
};

describe("an event", () => {
  test("arrives signed, is verified by the package of Standard Webhooks, and once more when it is asked for", async () => {
    const path = newPath();
    const { id, secret, eventSubscription } = await subscribe(path);
    expect(eventSubscription).toMatchObject({
      target: `http://${receiver.host}`,
      eventKinds: ["project.created"],
    });
    const projectId = await newProject("ship");
    const [first] = await receiver.arrived(path, 1);
    if (!first) throw new Error("nothing arrived");
    const payload = new Webhook(secret).verify(first.body, first.headers);
    expect(payload).toMatchObject({
      type: "project.created",
      timestamp: expect.stringMatching(/Z$/),
      data: {
        operation: "create",
        resourceType: "project",
        resourceId: projectId,
        url: `${server.url}/projects/${projectId}`,
      },
    });
    const { secret: other } = await subscribe(newPath(), { eventKinds: ["runner.deleted"] });
    expect(() => new Webhook(other).verify(first.body, first.headers)).toThrow();

    const entry = await attempted(id, 1);
    expect(entry).toMatchObject({
      id: first.headers["webhook-id"],
      state: "EVENT_DELIVERY_STATE_DELIVERED",
      attempts: [{ verdict: "EVENT_DELIVERY_VERDICT_ACCEPTED", statusCode: 204, detail: "answered 204" }],
    });
    const rotated = await call("RotateEventSubscriptionSecret", { eventSubscriptionId: id });
    await call("RedeliverEvent", { eventDeliveryId: entry.id });
    const [, again] = await receiver.arrived(path, 2);
    if (!again) throw new Error("nothing arrived again");
    expect([again.body, again.headers["webhook-id"]]).toEqual([first.body, entry.id]);
    for (const each of [rotated.secret, secret])
      expect(new Webhook(each).verify(again.body, again.headers)).toEqual(payload);
  });

  test("that the target does not take is tried again, no earlier than the target asks for", async () => {
    const path = newPath();
    const retryAfter = { "retry-after": "600" };
    receiver.answer(path, { status: 503, headers: retryAfter, body: "canary-of-an-answer" });
    const { id } = await subscribe(path);
    await newProject("boat");
    const entry = await attempted(id, 1);
    expect(entry.attempts[0]).toMatchObject({
      verdict: "EVENT_DELIVERY_VERDICT_REFUSED",
      statusCode: 503,
      detail: "answered 503",
    });
    // The table's first delay is five seconds, and the target asks for ten minutes.
    const wait = Date.parse(entry.nextAttemptAt) - Date.parse(entry.attempts[0].at);
    expect(wait).toBeGreaterThanOrEqual(600_000);
    // Asked for by an administrator, it is tried now.
    await call("RedeliverEvent", { eventDeliveryId: entry.id });
    const [, again] = await receiver.arrived(path, 2);
    expect(again?.headers["webhook-id"]).toBe(entry.id);
    const isDelivered = ({ id: each, state }: Answer["body"]) =>
      each === entry.id && state === "EVENT_DELIVERY_STATE_DELIVERED";
    await until(
      () => ledger(id),
      (entries) => entries.some(isDelivered),
    );
  });

  test("follows no redirect, reads no long answer, and goes to no address that is not public", async () => {
    const [path, elsewhere, long] = [newPath(), newPath(), newPath()];
    receiver.answer(path, { status: 307, headers: { location: receiver.url(elsewhere) } });
    receiver.answer(long, { status: 200, body: "x".repeat(65_537) });
    const redirected = await subscribe(path);
    const longWinded = await subscribe(long);
    const { id } = await subscribe("", { url: `https://127.0.0.1:1/${CANARY}` });
    await newProject("raft");
    expect((await attempted(redirected.id, 1)).attempts[0]).toMatchObject({
      verdict: "EVENT_DELIVERY_VERDICT_REFUSED",
      statusCode: 307,
    });
    expect(receiver.at(elsewhere)).toEqual([]);
    expect((await attempted(longWinded.id, 1)).attempts[0]).toMatchObject({
      verdict: "EVENT_DELIVERY_VERDICT_UNREADABLE",
    });
    expect((await attempted(id, 1)).attempts[0]).toMatchObject({
      verdict: "EVENT_DELIVERY_VERDICT_ADDRESS_REFUSED",
      detail: expect.stringContaining("is at an address that is not public"),
    });
  });
});

describe("a chat service", () => {
  let home: AgentFixture;
  const path = newPath();
  beforeAll(async () => {
    home = await createAgentFixture(server);
    const eventKinds = [
      "agent_execution.waits_for_input",
      "agent_execution.failed",
      "approval.asked",
      "workflow_execution.failed",
    ];
    await subscribe(path, { eventKinds, format: "EVENT_FORMAT_CHAT_TEXT" }, home.token);
  });
  const texts = async (count: number) =>
    (await receiver.arrived(path, count)).map(({ body }) => JSON.parse(body).text);

  test("gets a sentence with a link when an agent waits, an approval is asked for, and something fails", async () => {
    const run = await startLeasedAgentExecution(home);
    await run.wait();
    const waits = `An agent run waits for input: ${server.url}/agents/${run.id}`;
    expect(await texts(1)).toEqual([waits]);

    const approvalId = await ask(run.id);
    const asked = `An approval is asked for: ${server.url}/approvals/${approvalId}`;
    expect(await texts(2)).toEqual([waits, asked]);

    const failure = { reason: "agent_failed", message: "canary-of-a-failure" };
    await succeeded(home.runner.finish(run.work, "OUTCOME_FAILED", { failure }));
    const failed = `An agent run has failed: ${server.url}/agents/${run.id}`;
    expect(await texts(3)).toEqual([waits, asked, failed]);

    const executionId = await failingExecution();
    const execution = `An execution of a workflow has failed: ${server.url}/executions/${executionId}`;
    expect(await texts(4)).toEqual([waits, asked, failed, execution]);
  });

  function ask(agentExecutionId: string): Promise<string> {
    const { organizationId, administrator } = home;
    const creator = create(SubjectSchema, { id: administrator.userId, principal: Principal.USER });
    const options = [
      create(ApprovalOptionSchema, { id: "yes", name: "Run it", kind: OptionKind.ALLOW_ONCE }),
      create(ApprovalOptionSchema, { id: "no", name: "Do not", kind: OptionKind.REJECT_ONCE }),
    ];
    const asker = { agentExecutionId, toolCallId: "call-1", workflowExecutionId: "", workflowActionId: "" };
    return withServerData(server, (store) =>
      store.write(OPERATOR, "test", async (tx) => {
        const policyFieldPath = "agentPolicy.approvals";
        const more = { asker, creator, options, policyFieldPath, isShared: false };
        return (await askApproval(tx, { organizationId }, { asked: ASKED, ...more })).id;
      }),
    );
  }

  /** Starts a workflow whose only action fails; the id of the execution. */
  async function failingExecution(): Promise<string> {
    const trigger = {
      manual: {},
      context: { repositories: { repositoryUrls: { repoUrls: ["https://git.example.org/team/a.git"] } } },
    };
    const action = { limits: { maxParallel: 1, maxTotal: 1 }, steps: [{ task: { command: "false" } }] };
    const request = { name: "Nightly", triggers: [trigger], action };
    const { workflow } = await succeeded(home.call("WorkflowService/CreateWorkflow", request));
    const started = await succeeded(home.call("WorkflowService/StartWorkflow", { workflowId: workflow.id }));
    const work = await home.runner.leaseOne({ kinds: ["WORK_KIND_ACTION"] });
    await succeeded(home.runner.finish(work, "OUTCOME_FAILED"));
    return started.workflowExecution.id;
  }
});

describe("a subscription", () => {
  test.each([
    ["an address over http", { url: "http://hooks.example.org" }, "url"],
    ["an address with a user", { url: `https://user:${CANARY}@hooks.example.org` }, "url"],
    ["a kind that no event has", { eventKinds: ["project.created", "project.failed"] }, "eventKinds[1]"],
  ])("is not made with %s", async (_, more, field) => {
    const request = { name: "Chat", url: receiver.url("/"), eventKinds: ["*"], ...more };
    const answer = await post(server, "EventSubscriptionService/CreateEventSubscription", request);
    expect([answer.status, reasonOf(answer)]).toMatchObject([400, "VALUE_UNUSABLE"]);
    expect(JSON.stringify(answer.body)).toContain(field);
    expect(JSON.stringify(answer.body)).not.toContain(CANARY);
  });

  test("is managed by commands", async () => {
    const path = newPath();
    const environment = {
      XDG_CONFIG_HOME: temporaryFolder(),
      CHARTROOM_SERVER: server.url,
      CHARTROOM_TOKEN: server.token,
    };
    const webhook = async (args: readonly string[], input = "", command = runHostedCommand) => {
      const { code, stdout, stderr } = await command(["webhook", ...args], environment, input);
      expect([code, stderr.replace(/^chartroom: the second line is .*\n$/, "")]).toEqual([0, ""]);
      return stdout;
    };
    const withoutAddress = await runHostedCommand(
      ["webhook", "create", "Ships", "--event", "*"],
      environment,
    );
    expect(withoutAddress).toEqual({
      code: 1,
      stdout: "",
      stderr:
        "chartroom: give the address of the webhook by standard input: chartroom webhook create ... < FILE\n",
    });
    const creation = ["create", "Ships", "--event", "project.created", "runner.*"];
    const [id = "", secret = ""] = (await webhook(creation, `${receiver.url(path)}\n`, runCommand)).split(
      "\n",
    );
    expect(await webhook(["list"])).toMatch(
      new RegExp(`${id} +active .*Ships +project\\.created runner\\.\\*`),
    );
    await newProject("ferry");
    const [arrived] = await receiver.arrived(path, 1);
    expect(() => new Webhook(secret).verify(arrived?.body ?? "", arrived?.headers ?? {})).not.toThrow();
    const { id: deliveryId } = await attempted(id, 1);
    expect(await webhook(["ledger", id])).toMatch(
      new RegExp(`${deliveryId} .*delivered +1 +project\\.created .*accepted: answered 204`),
    );
    expect(await webhook(["ledger", id, "--state", "failed"])).toBe("no deliveries\n");
    expect(await webhook(["redeliver", deliveryId])).toBe("");
    await receiver.arrived(path, 2);
    const [, rotated = ""] = (await webhook(["rotate", id])).split("\n");
    expect([rotated.slice(0, 6), rotated === secret]).toEqual(["whsec_", false]);
    await webhook(["pause", id]);
    expect(JSON.parse(await webhook(["list", "--json"]))).toContainEqual(
      expect.objectContaining({ id, state: "EVENT_SUBSCRIPTION_STATE_PAUSED" }),
    );
    await webhook(["resume", id]);
    await webhook(["delete", id]);
    expect(await webhook(["list"])).not.toContain(id);
  });

  test("leaves neither its address nor a secret, nor what targets answer, in rows, answers and the log", async () => {
    const { id, secret } = await subscribe(newPath());
    const listed = await call("ListEventSubscriptions", { pagination: { pageSize: 100 } });
    expect(JSON.stringify(listed)).not.toContain(CANARY);
    const texts = [...(await storedTexts(server.dataDir)), ["the log", server.logText()] as const];
    for (const canary of [CANARY, secret, "whsec_", "canary-of-an-answer"]) {
      expect([canary, texts.filter(([, text]) => text.includes(canary)).map(([place]) => place)]).toEqual([
        canary,
        [],
      ]);
    }
    await call("DeleteEventSubscription", { eventSubscriptionId: id });
  });
});

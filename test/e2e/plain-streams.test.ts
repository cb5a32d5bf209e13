import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { CONTRACT } from "../../src/rpc/routes.ts";
import { isResumable } from "../../src/rpc/stream/stream-positions.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { fencedBlocks } from "../harness/fenced-blocks.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import {
  type AgentFixture,
  createAgentFixture,
  startLeasedAgentExecution,
} from "../harness/leased-agent-execution.ts";
import { addMember } from "../harness/member.ts";
import {
  openPlain,
  PLAIN_FORMS,
  type PlainForm,
  type PlainMessage,
  type PlainReader,
  type PlainRequest,
} from "../harness/plain-stream.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { startExecution, task } from "../harness/started-execution.ts";

const EVENTS = "EventService/WatchEvents";
const AGENT = "AgentService/WatchAgentExecution";
const LOGS = "WorkflowService/StreamActionLogs";

let server: ReachableServer;
let home: AgentFixture;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
  home = await createAgentFixture(server);
});
afterAll(stopAll);

const open = (operation: string, request: Omit<PlainRequest, "token"> & { token?: string | undefined }) =>
  openPlain(server, operation, { token: home.token, ...request });

/** The reason of an error, as a status or as the last message of a stream. */
const reasonIn = ({ details }: PlainMessage["body"]): string => details[0].debug.reason;

async function refused(stream: PlainReader) {
  expect(stream.header.get("content-type")).toBe("application/json");
  return [stream.status, reasonIn(await stream.json())];
}

const project = { initializer: { specs: [{ git: { remoteUri: "https://git.example.org/team/ship.git" } }] } };
const createProject = async (): Promise<string> =>
  (await succeeded(home.call("ProjectService/CreateProject", project))).project.id;

/** Answers the ids of created projects among events. */
const projectsIn = (messages: readonly PlainMessage[]) =>
  messages.flatMap(({ body }) => (body.resourceType === "RESOURCE_TYPE_PROJECT" ? [body.resourceId] : []));
/** Reads events until so many are of projects: others may come between. */
async function takeProjects(stream: PlainReader, count: number): Promise<PlainMessage[]> {
  const taken: PlainMessage[] = [];
  while (projectsIn(taken).length < count) taken.push(...(await stream.take(1)));
  return taken;
}
const idOf = (messages: readonly PlainMessage[]) => messages.at(-1)?.id ?? messages.at(-1)?.body.sequence;

test("every stream of service.v1 that changes nothing is had without a client", () => {
  const streams = CONTRACT.filter(({ typeName }) => typeName.startsWith("service.v1.")).flatMap(
    ({ methods }) => methods.filter(({ methodKind }) => methodKind === "server_streaming"),
  );
  expect(streams.filter((method) => !isResumable(method))).toEqual([]);
  expect(streams).toHaveLength(3);
});

describe.each<[PlainForm, "GET" | "POST"]>([
  [PLAIN_FORMS[0], "GET"],
  [PLAIN_FORMS[1], "POST"],
])("a stream as %s by %s", (form, method) => {
  test("of events tells where it begins, and resumes with none lost and none twice", async () => {
    const first = await open(EVENTS, { form, method, message: { organization: true } });
    expect([first.status, first.header.get("content-type"), first.header.get("cache-control")]).toEqual([
      200,
      form,
      "no-store",
    ]);
    const begun = await first.take(1);
    expect(begun[0]?.body.operation).toBe("RESOURCE_OPERATION_UNSPECIFIED");
    first.cut();
    const created = [await createProject(), await createProject()];
    const resume = (last: readonly PlainMessage[]) =>
      open(EVENTS, {
        form,
        method,
        message: { organization: true },
        headers: { "last-event-id": idOf(last) },
      });
    const second = await resume(begun);
    const before = await takeProjects(second, 1);
    second.cut();
    const third = await resume(before);
    const after = await takeProjects(third, 1);
    created.push(await createProject());
    after.push(...(await takeProjects(third, 1)));
    third.cut();
    expect(projectsIn([...before, ...after])).toEqual(created);
    if (form === "text/event-stream")
      expect(after.map(({ id }) => id)).toEqual(after.map(({ body }) => body.sequence));
  });

  test("of an agent resumes behind a block, and tells its end", async () => {
    const run = await startLeasedAgentExecution(home);
    const blocks = [1, 2, 3].map((sequence) => ({ sequence, text: { content: `block ${sequence}` } }));
    await succeeded(run.report({ blocks }));
    const message = { agentExecutionId: run.id };
    const first = await open(AGENT, { form, method, message });
    const [execution, ...begun] = await first.take(3);
    first.cut();
    expect(execution?.body.agentExecution.id).toBe(run.id);
    const last = form === "text/event-stream" ? (begun.at(-1)?.id ?? "") : begun.at(-1)?.body.block.sequence;
    const second = await open(AGENT, { form, method, message, headers: { "last-event-id": last } });
    const [again, third] = await second.take(2);
    if (form === "text/event-stream") expect([again?.id, third?.id]).toEqual(["2", "3"]);
    expect([...begun, third].map((each) => each?.body.block.sequence)).toEqual(["1", "2", "3"]);
    await succeeded(home.call("AgentService/StopAgentExecution", message));
    await succeeded(run.report());
    await succeeded(home.runner.finish(run.work));
    const rest = await second.rest();
    // Lines end with the body, which says the same.
    expect(rest.at(-1)?.kind).toBe(form === "text/event-stream" ? "end" : "message");
    const read: PlainMessage["body"][] = [];
    const script = fencedBlocks("docs/streams.md").find(({ language }) => language === "js");
    const watch = new Function(`${script?.text}; return watch;`)();
    await watch(`${server.url}/api/service.v1.${AGENT}`, home.token, message, (body: object) =>
      read.push(body),
    );
    expect(read.flatMap(({ block }) => (block ? [block.sequence] : []))).toEqual(["1", "2", "3"]);
  });

  test("of logs resumes in the middle of a step, and begins again with another attempt", async () => {
    await startExecution({ url: server.url, token: home.token }, { steps: [task("one"), task("two")] });
    const work = await home.runner.leaseOne({ kinds: ["WORK_KIND_ACTION"] });
    const message = { workflowExecutionActionId: work.action.actionId, follow: true };
    const report = (by: PlainMessage["body"], ...texts: [step: number, offset: number, text: string][]) =>
      succeeded(
        home.runner.report(by, {
          logs: texts.map(([stepIndex, offset, text]) => ({
            stepIndex,
            offset: String(offset),
            data: Buffer.from(text).toString("base64"),
          })),
        }),
      );
    const printed = ({ body }: PlainMessage) => [
      body.attempt,
      body.stepIndex,
      Buffer.from(body.data, "base64").toString(),
    ];
    const positionOf = ({ id, body }: PlainMessage) =>
      id ??
      `${body.attempt}.${body.stepIndex}.${Number(body.offset) + Buffer.from(body.data, "base64").length}`;
    const resume = (last: PlainMessage | undefined, more: object = {}) =>
      open(LOGS, {
        form,
        method,
        message: { ...message, ...more },
        headers: { "last-event-id": last ? positionOf(last) : "" },
      });
    await report(work, [0, 0, "abc"]);
    await report(work, [0, 3, "def"], [1, 0, "ghi"]);
    const first = await open(LOGS, { form, method, message });
    const [piece] = await first.take(1);
    first.cut();
    expect(piece && positionOf(piece)).toBe("1.0.3");
    const second = await resume(piece);
    const more = await second.take(2);
    second.cut();
    expect(more.map(printed)).toEqual([
      [1, 0, "def"],
      [1, 1, "ghi"],
    ]);
    expect(await refused(await resume(piece, { stepIndex: 1 }))).toEqual([
      400,
      "ERROR_REASON_VALUE_UNUSABLE",
    ]);
    await succeeded(home.runner.finish(work, "OUTCOME_RELEASED"));
    const again = await home.runner.leaseOne({ kinds: ["WORK_KIND_ACTION"] });
    await report(again, [0, 0, "xyz"]);
    const third = await resume(more.at(-1));
    expect((await third.take(1)).map(printed)).toEqual([[2, 0, "xyz"]]);
    third.cut();
    await succeeded(home.runner.finish(again, "OUTCOME_FAILED"));
  });

  test("that fails before its first message has the usual status and error", async () => {
    const unknown = { agentExecutionId: v7() };
    expect(await refused(await open(AGENT, { form, method, message: unknown }))).toEqual([
      404,
      "ERROR_REASON_NOT_FOUND",
    ]);
    expect(await refused(await open(AGENT, { form, method, message: { agentExecutionId: "x" } }))).toEqual([
      400,
      "ERROR_REASON_CONSTRAINT_VIOLATED",
    ]);
    const anonymous = await open(EVENTS, { form, method, token: undefined });
    expect(anonymous.header.get("www-authenticate")).toContain("Bearer");
    expect(await refused(anonymous)).toEqual([401, "ERROR_REASON_UNAUTHENTICATED"]);
    for (const place of ["x", "1.0.3", "-1", "9".repeat(18)]) {
      const stream = await open(EVENTS, { form, method, headers: { "last-event-id": place } });
      expect(await refused(stream)).toEqual([400, "ERROR_REASON_VALUE_UNUSABLE"]);
    }
  });

  test("that fails later ends with the reason", async () => {
    const { token, accountId } = await addMember(server, {
      organizationId: home.organizationId,
      email: `${v7()}@example.org`,
    });
    const stream = await open(EVENTS, { form, method, token });
    await stream.take(1);
    await succeeded(home.call("AccountService/BlockAccount", { accountId, reason: "left" }));
    const last = (await stream.rest()).at(-1);
    expect(last).toMatchObject({ kind: "failure", body: { code: "permission_denied" } });
    expect(reasonIn(last?.body)).toBe("ERROR_REASON_ACCOUNT_BLOCKED");
  });
});

test("a token in a query is refused, and never read or repeated", async () => {
  const { token } = home;
  const get = (query: string, headers: Record<string, string> = {}) =>
    fetch(`${server.url}/api/service.v1.${EVENTS}?${query}`, {
      headers: { accept: "text/event-stream", ...headers },
    });
  for (const name of ["access_token", "token", "authorization", "message"]) {
    const res = await get(`${name}=${encodeURIComponent(`Bearer ${token}`)}`);
    expect(res.status).toBe(401);
  }
  const authorization = `Bearer ${token}`;
  for (const query of [`token=${token}`, token, "message={}&message={}", "encoding=proto"]) {
    const res = await get(query, { authorization });
    const text = await res.text();
    expect([res.status, text.includes(token)]).toEqual([400, false]);
    expect(reasonIn(JSON.parse(text))).toBe("ERROR_REASON_VALUE_UNUSABLE");
  }
});

test("what asks for no stream in a plain form is answered as before", async () => {
  const ask = (operation: string, init: RequestInit) =>
    fetch(`${server.url}/api/service.v1.${operation}`, {
      ...init,
      headers: { authorization: `Bearer ${home.token}`, ...init.headers },
    });
  const accept = "text/event-stream";
  const unnamed = await ask(EVENTS, {
    method: "POST",
    body: "{}",
    headers: { "content-type": "application/json" },
  });
  const asked = [
    await ask("ProjectService/ListProjects", { headers: { accept } }),
    await ask(EVENTS, {}),
    await ask(EVENTS, { headers: { accept: "text/event-stream;q=0, */*" } }),
    unnamed,
    await ask(EVENTS, { method: "POST", body: "{}", headers: { accept, "content-type": "text/plain" } }),
  ];
  expect(asked.map(({ status }) => status)).toEqual([405, 405, 405, 415, 415]);
  expect((await unnamed.json()).message).toContain("Accept: text/event-stream or application/x-ndjson");
  const packed = await ask(EVENTS, {
    method: "POST",
    body: "{}",
    headers: { accept, "content-type": "application/json", "content-encoding": "br" },
  });
  expect([packed.status, reasonIn(await packed.json())]).toEqual([501, "ERROR_REASON_TRANSPORT_UNSUPPORTED"]);
});

test("plain streams count among those of a token, and end with the server", async () => {
  const narrow = await startHostedServer({ args: ["--streams-per-token", "1"] });
  const ask = () => openPlain(narrow, EVENTS, { form: "text/event-stream", token: narrow.token });
  const stream = await ask();
  await stream.take(1);
  expect(await refused(await ask())).toEqual([429, "ERROR_REASON_TOO_MANY_STREAMS"]);
  await narrow.stop();
  const last = (await stream.rest()).at(-1);
  expect([last?.kind, reasonIn(last?.body)]).toEqual(["failure", "ERROR_REASON_UNAVAILABLE"]);
});

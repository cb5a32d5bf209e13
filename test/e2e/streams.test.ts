import {
  type DescMethod,
  type DescMethodServerStreaming,
  fromJson,
  type JsonObject,
  type Message,
} from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { CONTRACT } from "../../src/rpc/routes.ts";
import { succeeded } from "../harness/fake-runner.ts";
import {
  type AgentFixture,
  createAgentFixture,
  startLeasedAgentExecution,
} from "../harness/leased-agent-execution.ts";
import { addMember, type TestMember } from "../harness/member.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { startExecution } from "../harness/started-execution.ts";
import { readStream, type StreamReader } from "../harness/stream-reader.ts";

/** A stream that can be opened, and what makes it tell something. */
interface Opening {
  readonly request: JsonObject;
  /** Whose it is: a person's, or the runner's. */
  readonly token: string;
  /** Changes what the stream waits for. */
  readonly change: () => Promise<unknown>;
  /** What is asked besides for a stream that tells something at once. */
  readonly fromStart?: JsonObject;
}

interface StreamOperation {
  /** What bounds how many are open. */
  readonly cap: "settings" | "leases";
  /** The topic of Store.onChange that wakes it, in words. */
  readonly wokenBy: string;
  readonly prepare: (home: AgentFixture, person: TestMember) => Promise<Opening>;
}

const project = { initializer: { specs: [{ git: { remoteUri: "https://git.example.org/team/ship.git" } }] } };
const block = (sequence: number) => ({ sequence: String(sequence), text: { content: "said" } });

/** Every operation of the contract that streams; a new one fails the first test until it is here. */
const STREAMS: Readonly<Record<string, StreamOperation>> = {
  "AgentService/WatchAgentExecution": {
    cap: "settings",
    wokenBy: "the agent execution, and rights in its organization",
    async prepare(home, { token }) {
      const run = await startLeasedAgentExecution({ ...home, token });
      const change = () => run.report({ blocks: [block(1)] });
      return { request: { agentExecutionId: run.id }, token, change };
    },
  },
  "AgentWorkService/StreamInputs": {
    cap: "leases",
    wokenBy: "the agent execution",
    async prepare(home, { token }) {
      const run = await startLeasedAgentExecution({ ...home, token });
      const { leaseId, fence } = run.work;
      return { request: { leaseId, fence }, token: home.runner.token, change: () => run.say("go on") };
    },
  },
  "EventService/WatchEvents": {
    cap: "settings",
    wokenBy: "events of the organization",
    async prepare(home, { token }) {
      const change = () => home.call("ProjectService/CreateProject", project);
      return { request: {}, token, change, fromStart: { afterSequence: "0" } };
    },
  },
  "WorkflowService/StreamActionLogs": {
    cap: "settings",
    wokenBy: "the action",
    async prepare({ server, runner, token: administrator }, { token }) {
      // Not by the reader, whose block would end the action, and with it the stream, as at its own end.
      await startExecution({ url: server.url, token: administrator });
      const work = await runner.leaseOne({ kinds: ["WORK_KIND_ACTION"] });
      const logs = [{ stepIndex: 0, offset: "0", data: Buffer.from("printed").toString("base64") }];
      return {
        request: { workflowExecutionActionId: work.action.actionId, follow: true },
        token,
        change: () => succeeded(runner.report(work, { logs })),
      };
    },
  },
};

/** Tested in environment-question.test.ts: it is of a runner's process, which outlasts leases, and no account is behind it. */
const ELSEWHERE = ["EnvironmentWorkService/WatchRequests"];

const methods = new Map<string, DescMethod>(
  CONTRACT.flatMap((service) =>
    service.methods.flatMap((method) =>
      method.methodKind === "server_streaming" ? [[`${service.name}/${method.name}`, method] as const] : [],
    ),
  ),
);

// Leases hold as long as the test goes on.
const LASTING = ["--lease-duration", "3600"];

let server: ReachableServer;
beforeAll(async () => {
  server = await startHostedServer({ args: LASTING });
});
afterAll(stopAll);

/** A server that takes two streams of a token, three of an organization and four in all. */
const narrowServer = () =>
  startHostedServer({
    args: [...LASTING, "--streams-per-token", "2", "--streams-per-organization", "3", "--streams", "4"],
  });

const person = ({ server: at, organizationId }: AgentFixture) =>
  addMember(at, { organizationId, email: `${v7()}@example.org` });

function open(
  at: ReachableServer,
  name: string,
  { request, token }: Pick<Opening, "request" | "token">,
): StreamReader<Message> {
  const method = methods.get(name) as DescMethodServerStreaming;
  const client = createClient(method.parent, createGrpcTransport({ baseUrl: at.url })) as unknown as Record<
    string,
    (message: Message, options: object) => AsyncIterable<Message>
  >;
  return readStream(token, (options) => {
    const stream = client[method.localName];
    if (!stream) throw new Error(`the client has no ${name}`);
    return stream(fromJson(method.input, request), options);
  });
}

/** What refuses a stream: the scope of the cap and the cap. */
async function refusal(reading: StreamReader<Message>) {
  const error = await reading.ended;
  const detail = error.findDetails(ErrorDetailSchema)[0];
  expect([error.code, detail?.reason]).toEqual([Code.ResourceExhausted, ErrorReason.TOO_MANY_STREAMS]);
  return detail?.metadata;
}

describe("the list of streams", () => {
  test("has every operation of the contract that streams, and no other", () => {
    expect([...Object.keys(STREAMS), ...ELSEWHERE].toSorted()).toEqual([...methods.keys()].toSorted());
  });

  test("bounds every stream of service.v1 by the settings, and those of runners by leases", () => {
    for (const [name, { cap }] of Object.entries(STREAMS)) {
      const isOfRunners = methods.get(name)?.parent.typeName.startsWith("runner.v1.");
      expect([name, cap]).toEqual([name, isOfRunners ? "leases" : "settings"]);
    }
  });
});

describe.each(Object.entries(STREAMS))("%s", (name, { cap, wokenBy, prepare }) => {
  test(`tells what happened when ${wokenBy} changed`, async () => {
    const home = await createAgentFixture(server);
    const opening = await prepare(home, await person(home));
    const stream = open(server, name, opening);
    await stream.opened;
    const before = stream.messages.length;
    await opening.change();
    expect((await stream.until(before + 1)).length).toBeGreaterThan(before);
    stream.cancel();
  });

  test("ends when the account behind it is blocked", async () => {
    const home = await createAgentFixture(server);
    const somebody = await person(home);
    const stream = open(server, name, await prepare(home, somebody));
    await stream.opened;
    const { accountId } = somebody;
    await succeeded(home.call("AccountService/BlockAccount", { accountId, reason: "left" }));
    const error = await stream.ended;
    expect(error.findDetails(ErrorDetailSchema)[0]?.reason).toBe(ErrorReason.ACCOUNT_BLOCKED);
  });

  if (cap === "settings") {
    test("is refused past the caps of a token, an organization and a server, and free once one ended", async () => {
      const narrow = await narrowServer();
      const [home, away] = [await createAgentFixture(narrow), await createAgentFixture(narrow)];
      const [first, second, other] = [await person(home), await person(home), await person(away)];
      const openings = new Map<TestMember, Opening>();
      for (const whose of [first, second, other]) {
        const opening = await prepare(whose === other ? away : home, whose);
        await opening.change();
        openings.set(whose, { ...opening, request: { ...opening.request, ...opening.fromStart } });
      }
      const opened = (whose: TestMember) => open(narrow, name, openings.get(whose) as Opening);
      const begun = async (whose: TestMember) => {
        const stream = opened(whose);
        expect((await stream.until(1)).length).toBeGreaterThan(0);
        return stream;
      };
      const streams = [await begun(first), await begun(first)];
      expect(await refusal(opened(first))).toEqual({ scope: "token", limit: "2" });
      const third = await begun(second);
      expect(await refusal(opened(second))).toEqual({ scope: "organization", limit: "3" });
      await begun(other);
      expect(await refusal(opened(other))).toEqual({ scope: "server", limit: "4" });
      // Each way in which a stream ends gives its place back: its account is blocked, or the client leaves.
      const { accountId } = first;
      await succeeded(home.call("AccountService/BlockAccount", { accountId, reason: "left" }));
      await Promise.all(streams.map(({ ended }) => ended));
      await begun(second);
      third.cancel();
      await openOnceFree(() => opened(second));
      expect(await refusal(opened(second))).toEqual({ scope: "token", limit: "2" });
    });
    return;
  }

  test("is not counted by the settings; a newer stream of the lease ends the one before", async () => {
    const narrow = await narrowServer();
    const home = await createAgentFixture(narrow);
    const openings: Opening[] = [];
    for (let held = 0; held < 5; held++) openings.push(await prepare(home, await person(home)));
    const streams = openings.map((opening) => open(narrow, name, opening));
    await Promise.all(streams.map(({ opened }) => opened));
    const [opening] = openings as [Opening];
    const newer = open(narrow, name, opening);
    await newer.opened;
    expect((await streams[0]?.ended)?.rawMessage).toBe("the stream ended without an error");
    await opening.change();
    expect(await newer.until(1)).toHaveLength(1);
    for (const stream of [...streams, newer]) stream.cancel();
  });
});

/** Opens a stream as soon as the server has learned that a client left. */
async function openOnceFree(open: () => StreamReader<Message>): Promise<void> {
  for (;;) {
    if ((await open().until(1)).length > 0) return;
  }
}

import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { AgentExecution_Phase as Phase } from "#gen/service/v1/agent_pb.js";
import type { WatchAgentExecutionResponse } from "#gen/service/v1/agent_service_pb.js";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { post, reasonOf } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import {
  type AgentFixture,
  createAgentFixture,
  type LeasedAgentExecution,
  leasedAgentExecution,
  startLeasedAgentExecution,
} from "../harness/leased-agent-execution.ts";
import { addMember } from "../harness/member.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";

/** What takes a few seconds on a machine that does nothing else. */
const LONG_MS = 600_000;

let server: ReachableServer;
let home: AgentFixture;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
  home = await createAgentFixture(server);
});
afterAll(stopAll);

type Messages = readonly WatchAgentExecutionResponse[];

const blocksIn = (messages: Messages) =>
  messages.flatMap(({ news }) => (news.case === "block" ? [news.value] : []));
const sequencesIn = (messages: Messages) => blocksIn(messages).map(({ sequence }) => Number(sequence));
const runsIn = (messages: Messages) =>
  messages.flatMap(({ news }) => (news.case === "agentExecution" ? [news.value] : []));
const textBlock = (sequence: number, content = `block ${sequence}`) => ({ sequence, text: { content } });

/** Reports blocks of so many numbers from one on. */
async function answer(run: LeasedAgentExecution, from: number, count: number): Promise<void> {
  const blocks = Array.from({ length: count }, (_, index) => textBlock(from + index));
  await succeeded(run.report({ blocks }));
}

describe("a watch", () => {
  test("tells the run first, each block in order, and the run again whenever it changes", async () => {
    const run = await startLeasedAgentExecution(home);
    await answer(run, 1, 3);
    const watch = run.watch();
    const [first, ...rest] = await watch.until(4);
    expect(first?.news).toMatchObject({ case: "agentExecution", value: { id: run.id } });
    expect(sequencesIn(rest)).toEqual([1, 2, 3]);
    await run.wait();
    await watch.find(
      ({ news }) => news.case === "agentExecution" && news.value.status?.phase === Phase.WAITING_FOR_INPUT,
    );
    await succeeded(
      run.report({ currentActivity: "thinks", usage: { inputTokens: 7 }, blocks: [textBlock(4)] }),
    );
    await watch.find(({ news }) => news.case === "block" && news.value.sequence === 4n);
    await watch.find(
      ({ news }) => news.case === "agentExecution" && news.value.status?.inputTokensUsed === 7n,
    );
    // What changes nothing is sent to nobody.
    const sent = watch.messages.length;
    await succeeded(run.report({ usage: { inputTokens: 7 } }));
    await succeeded(run.report({ blocks: [textBlock(4), textBlock(5)] }));
    await watch.find(({ news }) => news.case === "block" && news.value.sequence === 5n);
    expect(watch.messages).toHaveLength(sent + 1);
    watch.cancel();
    expect((await watch.ended).code).toBe(Code.Canceled);
  });

  test("resumes behind a number, and refuses one that the run has not reached", async () => {
    const run = await startLeasedAgentExecution(home);
    await answer(run, 1, 60);
    await answer(run, 61, 5);
    const resumed = run.watch(58);
    expect(sequencesIn(await resumed.until(8))).toEqual([59, 60, 61, 62, 63, 64, 65]);
    resumed.cancel();
    const none = run.watch(65);
    expect(runsIn(await none.until(1))).toHaveLength(1);
    none.cancel();
    const ahead = await run.watch(66).ended;
    expect([ahead.code, ahead.findDetails(ErrorDetailSchema)[0]?.reason]).toEqual([
      Code.InvalidArgument,
      ErrorReason.VALUE_UNUSABLE,
    ]);
    expect((await run.watch(-1).ended).code).toBe(Code.InvalidArgument);
  });

  test("ends once the run has stopped and all was sent", async () => {
    const run = await startLeasedAgentExecution(home);
    const watch = run.watch();
    await watch.opened;
    await answer(run, 1, 64);
    await answer(run, 65, 6);
    await succeeded(home.runner.finish(run.work));
    expect((await watch.ended).rawMessage).toBe("the stream ended without an error");
    expect(sequencesIn(watch.messages)).toHaveLength(70);
    expect(runsIn(watch.messages).at(-1)?.status?.phase).toBe(Phase.STOPPED);
    // Of a run that has stopped everything is sent, and the stream ends at once.
    const late = run.watch(68);
    await late.ended;
    expect([runsIn(late.messages).length, sequencesIn(late.messages)]).toEqual([1, [69, 70]]);
    // Also where that is more than is read at a time.
    const whole = run.watch();
    await whole.ended;
    expect(sequencesIn(whole.messages)).toHaveLength(70);
  });

  test(
    "loses nothing over 200 dropped connections, while the agent goes on",
    async () => {
      const run = await startLeasedAgentExecution(home);
      let isWriting = true;
      const writing = (async () => {
        for (let from = 1; from <= 1_200; from += 3) await answer(run, from, 3);
        await succeeded(home.runner.finish(run.work));
        isWriting = false;
      })();
      const seen: number[] = [];
      let drops = 0;
      for (; drops < 200; drops++) {
        const watch = run.watch(seen.at(-1) ?? 0);
        // The connection drops after 1 to 7 messages, the first of which is the run.
        await watch.until(1 + (drops % 7));
        watch.cancel();
        seen.push(...sequencesIn(watch.messages));
      }
      const last = run.watch(seen.at(-1) ?? 0);
      await last.ended;
      seen.push(...sequencesIn(last.messages));
      await writing;
      expect(isWriting).toBe(false);
      expect(seen).toEqual(Array.from({ length: 1_200 }, (_, index) => index + 1));
    },
    LONG_MS,
  );

  test(
    "goes on at the next server behind the last number",
    async () => {
      const first = await startHostedServer({ args: LONG_LEASES });
      const here = await createAgentFixture(first);
      const run = await startLeasedAgentExecution(here);
      await answer(run, 1, 2);
      const watch = run.watch();
      await watch.until(3);
      const stopping = first.stop();
      const error = await watch.ended;
      expect([error.code, error.findDetails(ErrorDetailSchema)[0]?.reason]).toEqual([
        Code.Unavailable,
        ErrorReason.UNAVAILABLE,
      ]);
      await stopping;
      const next = await startHostedServer({ dataDir: first.dataDir, args: LONG_LEASES });
      const { runner, token } = here;
      const again = leasedAgentExecution({ server: next, token, runner }, run.id, run.work);
      const resumed = again.watch(1);
      expect(sequencesIn(await resumed.until(2))).toEqual([2]);
      resumed.cancel();
      await next.stop();
    },
    LONG_MS,
  );

  test("of a run that is deleted ends as not found", async () => {
    const run = await startLeasedAgentExecution(home);
    await succeeded(home.runner.finish(run.work));
    await succeeded(
      post(server, "AgentService/DeleteAgentExecution", { agentExecutionId: run.id }, home.token),
    );
    expect((await run.watch().ended).code).toBe(Code.NotFound);
  });
});

describe("who may watch a run and list its inputs", () => {
  test("is decided by the policy, also while a watch goes on", async () => {
    const shared = await createAgentFixture(server);
    const { organizationId } = shared;
    const member = await addMember(server, { organizationId, email: `${v7()}@example.org` });
    const run = await startLeasedAgentExecution(shared);
    await run.say("secret");
    const asMember = leasedAgentExecution({ ...shared, token: member.token }, run.id, run.work);
    const list = () =>
      post(server, "AgentService/ListAgentInputs", { agentExecutionId: run.id }, member.token);
    expect((await asMember.watch().ended).code).toBe(Code.NotFound);
    expect(reasonOf(await list())).toBe("NOT_FOUND");
    await shared.set({
      agentPolicy: { conversationSharingPolicy: "CONVERSATION_SHARING_POLICY_ORGANIZATION" },
    });
    const watch = asMember.watch();
    await watch.until(1);
    expect((await list()).body.inputs).toHaveLength(1);
    await shared.set({ agentPolicy: { conversationSharingPolicy: "CONVERSATION_SHARING_POLICY_DISABLED" } });
    expect((await watch.ended).code).toBe(Code.NotFound);
    const foreign = await createAgentFixture(server);
    const asForeign = leasedAgentExecution({ ...shared, token: foreign.token }, run.id, run.work);
    expect((await asForeign.watch().ended).code).toBe(Code.NotFound);
  });

  test("ends with the token", async () => {
    const run = await startLeasedAgentExecution(home);
    const { body } = await home.call("UserService/CreatePersonalAccessToken", { description: "short" });
    const watch = leasedAgentExecution({ ...home, token: body.token }, run.id, run.work).watch();
    await watch.until(1);
    const { personalAccessTokens } = (await home.call("UserService/ListPersonalAccessTokens", {})).body;
    const { id } = personalAccessTokens.find((each: { description: string }) => each.description === "short");
    await home.call("UserService/DeletePersonalAccessToken", { personalAccessTokenId: id });
    expect((await watch.ended).code).toBe(Code.Unauthenticated);
  });
});

describe("a list of inputs", () => {
  test("goes over pages in the order of delivery, or in that of arrival", async () => {
    const run = await startLeasedAgentExecution(home);
    for (const id of ["a", "b", "c", "d", "e"]) await run.say(id);
    await run.sendControlInput({ moveQueuedMessage: { userInputId: "e", beforeUserInputId: "a" } });
    await run.sendControlInput({ deleteQueuedMessage: { userInputId: "b" } });
    const all = async (includePast: boolean) => {
      const ids: string[] = [];
      for (let token = ""; ; ) {
        const pagination = { pageSize: 2, token };
        const body = await succeeded(
          post(
            server,
            "AgentService/ListAgentInputs",
            { agentExecutionId: run.id, includePast, pagination },
            home.token,
          ),
        );
        ids.push(...body.inputs.map((each: { id: string }) => each.id));
        token = body.pagination.nextToken;
        if (token === "") return ids;
      }
    };
    expect(await all(false)).toEqual(["e", "a", "c", "d"]);
    expect(await all(true)).toEqual(["a", "b", "c", "d", "e"]);
  });

  test("takes no token of another list", async () => {
    const run = await startLeasedAgentExecution(home);
    for (const id of ["a", "b"]) await run.say(id);
    const list = (includePast: boolean, token: string) =>
      post(
        server,
        "AgentService/ListAgentInputs",
        { agentExecutionId: run.id, includePast, pagination: { pageSize: 1, token } },
        home.token,
      );
    const { nextToken } = (await list(false, "")).body.pagination;
    expect(reasonOf(await list(true, nextToken))).toBe("PAGE_TOKEN_INVALID");
  });
});

import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { ReportAgentRequest_State as State } from "#gen/runner/v1/agent_work_service_pb.js";
import { type Work, WorkKind } from "#gen/runner/v1/work_pb.js";
import { FinishWorkRequest_Outcome as Outcome } from "#gen/runner/v1/work_service_pb.js";
import { AgentMode, type AgentOutputBlock, AgentOutputView as View } from "#gen/service/v1/agent_pb.js";
import { ToolKind } from "#gen/service/v1/approval_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { Principal } from "#gen/service/v1/identity_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { insertTestMember } from "../../harness/member.ts";
import { openTestStore, type TestStore, userOf } from "../../harness/test-store.ts";
import { type RegisteredRunner, registeredRunner } from "../runner/work-service.ts";
import { servicesOf } from "../services.ts";
import { addAgent, type Runs, runsOn, watchedBlocks } from "./agents.ts";

let made: TestStore;
let caller: Caller;
let runner: RegisteredRunner;
let runs: Runs;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  runner = await registeredRunner(made, caller);
  runs = runsOn(made, caller, runner);
  await addAgent(made, caller.organizationId, { isDefault: true, takesSettings: true });
});
afterEach(() => made.close());

type Content = AgentOutputBlock["block"];
const text = (content: string): Content => ({ case: "text", value: { content } }) as Content;
const call = (state: number, title = ""): Content =>
  ({ case: "toolCall", value: { id: "a", title, state } }) as Content;
const usage = (contextUsed: bigint): Content => ({ case: "usage", value: { contextUsed } }) as Content;

async function say(given: Work, ...contents: readonly Content[]): Promise<void> {
  const value = given.work.value as { lastSequence: bigint };
  const blocks = contents.map((block, index) => ({
    sequence: value.lastSequence + BigInt(index + 1),
    block,
  }));
  await runs.work.reportAgent({ ...runs.named(given), blocks, state: State.WAITING });
}

/** Ends a run, and the environment that was made for it. */
async function end({ id, given }: { readonly id: string; readonly given: Work }): Promise<string> {
  await runs.agents.stopAgentExecution({ agentExecutionId: id });
  await runs.finish(given, Outcome.STOPPED);
  const [stopping] = await runs.lease(WorkKind.ENVIRONMENT);
  if (!stopping) throw new Error("the environment is not stopped");
  await runner.reportProgress({
    ...runs.named(stopping),
    environment: { phase: EnvironmentPhase.STOPPED },
  });
  await runner.finishWork({ ...runs.named(stopping), outcome: Outcome.DONE });
  return id;
}

/** Three runs of one conversation, of which the last goes on. */
async function conversation(): Promise<{ readonly ids: string[]; readonly given: Work }> {
  const first = await runs.running({ name: "Fix it" });
  await say(first.given, text("one"), call(1, "Read"), usage(1n), call(4), usage(2n));
  const second = await runs.running({ resumeFrom: await end(first) });
  await say(second.given, call(3, "Write"), text("two"), usage(3n));
  const third = await runs.running({ resumeFrom: await end(second) });
  await say(third.given, text("three"), call(4), call(5));
  return { ids: [first.id, second.id, third.id], given: third.given };
}

const shown = ({ sequence, lastSequence, block }: AgentOutputBlock) => {
  const { case: kind, value } = block;
  const words =
    kind === "text"
      ? value.content
      : kind === "toolCall"
        ? `${value.title}${value.state}`
        : kind === "usage"
          ? `${value.contextUsed} used`
          : kind;
  return `${sequence}${lastSequence ? `-${lastSequence}` : ""} ${words}`;
};

async function listed(by: Runs, agentExecutionId: string, view: View, pageSize: number): Promise<string[]> {
  const blocks: AgentOutputBlock[] = [];
  for (let token = ""; ; ) {
    const request = { agentExecutionId, view, pagination: { pageSize, token } };
    const page = await by.agents.listAgentOutputBlocks(request);
    blocks.push(...page.blocks);
    token = page.pagination?.nextToken ?? "";
    if (token === "") return blocks.map(shown);
  }
}

const ALL = [
  ...["1 one", "2 Read1", "3 1 used", "4 4", "5 2 used"],
  ...["6 Write3", "7 two", "8 3 used"],
  ...["9 three", "10 4", "11 5"],
];
const FOLDED = [
  ...["1-1 one", "2-4 Read4", "5-5 2 used"],
  ...["6-6 Write3", "7-7 two", "8-8 3 used"],
  ...["9-9 three", "10-11 5"],
];

describe("the output of a conversation", () => {
  test("is listed over all runs in order, in pages of any size, and not beyond a run", async () => {
    const { ids } = await conversation();
    const [first = "", second = "", third = ""] = ids;
    for (const pageSize of [1, 2, 3, 4, 100]) {
      expect(await listed(runs, third, View.BLOCKS, pageSize)).toEqual(ALL);
      expect(await listed(runs, third, View.FOLDED, pageSize)).toEqual(FOLDED);
    }
    expect(await listed(runs, second, View.BLOCKS, 100)).toEqual(ALL.slice(0, 8));
    expect(await listed(runs, first, View.BLOCKS, 2)).toEqual(ALL.slice(0, 5));
  });

  test("is watched over all runs in order, from any block on", async () => {
    const { ids } = await conversation();
    const agentExecutionId = ids[2] ?? "";
    const watched = async (view: View, after: number) => {
      const request = { agentExecutionId, view, afterSequence: BigInt(after) };
      const last = (block: AgentOutputBlock) => (block.lastSequence || block.sequence) === 11n;
      return (await watchedBlocks(made, caller, request, last)).map(shown);
    };
    for (let after = 0; after < ALL.length; after++)
      expect(await watched(View.BLOCKS, after)).toEqual(ALL.slice(after));
    // A tool call of another run is another one, whatever its id.
    expect(await watched(View.FOLDED, 0)).toEqual(FOLDED);
    expect(await watched(View.FOLDED, 5)).toEqual(FOLDED.slice(3));
    expect(await watched(View.FOLDED, 3)).toEqual(FOLDED.slice(1));
  });

  test("of a longer conversation is watched and listed without a gap", async () => {
    const first = await runs.running();
    const [long, all] = [Array.from({ length: 20 }, (_, index) => `one ${index}`), 40];
    await say(first.given, ...long.map(text));
    const second = await runs.running({ resumeFrom: await end(first) });
    await say(second.given, ...long.map(text));
    const request = { agentExecutionId: second.id };
    const blocks = await watchedBlocks(made, caller, request, ({ sequence }) => sequence === BigInt(all));
    expect(blocks.map(({ sequence }) => Number(sequence))).toEqual(
      Array.from({ length: all }, (_, index) => index + 1),
    );
    expect(await listed(runs, second.id, View.BLOCKS, 7)).toHaveLength(all);
  });

  test("leaves out a run that was deleted, and all before it", async () => {
    const { ids } = await conversation();
    const [, second = "", third = ""] = ids;
    await runs.agents.deleteAgentExecution({ agentExecutionId: second });
    expect(await listed(runs, third, View.BLOCKS, 2)).toEqual(ALL.slice(8));
  });

  test("leaves out what the caller may not read, and all before it", async () => {
    const { organizationId } = caller;
    const email = "second@example.org";
    const second = await insertTestMember(made.store, made.keys, { organizationId, email });
    const tokenId = await made.issueTokenId(second.userId);
    const user = userOf({ ...caller, accountId: second.accountId, tokenId }, second.userId);
    const member: Caller = { ...user, role: "member" };
    const { ids, given } = await conversation();
    // An administrator that has become a member goes on with a run of somebody else.
    const fourth = await runsOn(made, user, runner).running({
      resumeFrom: await end({ id: ids[2] ?? "", given }),
    });
    await say(fourth.given, text("four"));
    expect(await listed(runs, fourth.id, View.BLOCKS, 100)).toEqual([...ALL, "12 four"]);
    expect(await listed(runsOn(made, member, runner), fourth.id, View.BLOCKS, 100)).toEqual(["12 four"]);
  });
});

describe("a run that goes on with another", () => {
  test("takes the work up where that has left it", async () => {
    const first = await runs.running({
      name: "Fix it",
      mode: AgentMode.PLANNING,
      extAgentSettings: { model: 2 },
      codeContext: { pullRequest: { id: "7", title: "Say hello" } },
    });
    await say(first.given, text("one"));
    const second = await runs.running({ resumeFrom: await end(first) });
    expect(second.given.work).toMatchObject({
      value: {
        lastSequence: 1n,
        conversationId: first.id,
        agentExecution: {
          metadata: { name: "Fix it", resumedFrom: first.id, conversationId: first.id, earlierSequence: 1n },
          spec: { extAgentSettings: { model: 2 }, codeContext: { pullRequest: { id: "7" } } },
          status: { mode: AgentMode.PLANNING, usedEnvironments: [{ createdByAgent: false }] },
        },
      },
    });
    expect(first.given.work).toMatchObject({ value: { lastSequence: 0n, conversationId: first.id } });
  });

  test("is for those who may send to that one, and start its environment", async () => {
    const { organizationId } = caller;
    const email = "second@example.org";
    const second = await insertTestMember(made.store, made.keys, { organizationId, email });
    const tokenId = await made.issueTokenId(second.userId);
    const user = userOf({ ...caller, accountId: second.accountId, tokenId }, second.userId);
    const theirs = runsOn(made, { ...user, role: "member" }, runner);
    const hidden = { reason: ErrorReason.NOT_FOUND };
    const inOurs = await end(await runs.running());
    await expect(theirs.start({ resumeFrom: inOurs })).rejects.toMatchObject(hidden);
    const inTheirs = await theirs.running();
    const environmentId = (await runs.get(inTheirs.id))?.status?.usedEnvironments[0]?.environmentId ?? "";
    await end(inTheirs);
    const context = { case: "environmentId", value: environmentId } as const;
    const ours = await end(await runs.running({ codeContext: { context } }));
    await expect(theirs.start({ resumeFrom: ours })).rejects.toMatchObject(hidden);
    await theirs.start({ codeContext: { context } });
    await runs.start({ resumeFrom: ours });
  });

  test("needs the environment of that one", async () => {
    const resumeFrom = await end(await runs.running());
    const environmentId = (await runs.get(resumeFrom))?.status?.usedEnvironments[0]?.environmentId ?? "";
    await servicesOf(made, caller).environments.deleteEnvironment({ environmentId });
    await expect(runs.start({ resumeFrom })).rejects.toMatchObject({ reason: ErrorReason.PENDING_DELETION });
  });

  test("asks people as that one does, though a service account resumes it", async () => {
    const toolCall = { kind: ToolKind.EXECUTE, title: "Run", tool: "shell" };
    const request = { toolCallId: "1", request: { case: "toolCall" as const, value: toolCall } };
    const robot: Caller = {
      ...caller,
      subject: { ...caller.subject, principal: Principal.SERVICE_ACCOUNT },
    };
    const theirs = runsOn(made, robot, runner);
    const alone = await theirs.running();
    const asks = async (given: Work) =>
      (await runs.work.requestApproval({ ...runs.named(given), ...request })).answer.case;
    expect(await asks(alone.given)).toBe("policy");
    const resumed = await theirs.running({ resumeFrom: await end(await runs.running()) });
    expect(await asks(resumed.given)).toBe("approval");
    // Also once nothing is left of the run that the person began.
    const again = await theirs.running({ resumeFrom: await end(resumed) });
    const { resumedFrom = "" } = (await runs.get(resumed.id))?.metadata ?? {};
    await runs.agents.deleteAgentExecution({ agentExecutionId: resumedFrom });
    await runs.agents.deleteAgentExecution({ agentExecutionId: resumed.id });
    expect(await asks(again.given)).toBe("approval");
    const ofPerson = await runs.running({ resumeFrom: await end(alone) });
    expect(await asks(ofPerson.given)).toBe("approval");
  });
});

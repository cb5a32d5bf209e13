import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { readLog } from "../harness/action-log.ts";
import {
  addScriptedAgent,
  type Conversation,
  closeConversations,
  conversationOf,
  receivedInputs,
  startConversation,
} from "../harness/agent-conversation.ts";
import { type Answer, post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { type BareRepository, bareRepository } from "../harness/git-repository.ts";
import { type HostedRunner, startRegisteredHostedRunner, stopRunners } from "../harness/runner-process.ts";
import { type ReachableServer, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { startExecution } from "../harness/started-execution.ts";
import { until } from "../harness/until.ts";

type Body = Answer["body"];

/** One pixel. */
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

let server: ReachableServer;
let runner: HostedRunner;
let repository: BareRepository;
let logFile: string;
beforeAll(async () => {
  server = await startHostedServer();
  logFile = join(temporaryFolder(), "got");
  repository = bareRepository(temporaryFolder(), { "a.txt": "one\n" }, "hello.git");
  await addScriptedAgent(server, logFile);
  runner = await startRegisteredHostedRunner(server, { args: ["--agent-slots", "20"] });
});
afterAll(async () => {
  closeConversations();
  await stopRunners();
  await stopAll();
});

const inRepository = () => ({ codeContext: { contextUrl: { url: repository.url } } });
const got = ({ id }: Pick<Conversation, "id">) => receivedInputs(id, logFile);
const steer = (userInputId: string) => ({ controlInput: { steerQueuedMessage: { userInputId } } });
/** Ends a slow turn, which goes on as long as nobody says so. */
async function isEnough(conversation: Conversation): Promise<void> {
  await conversation.say("enough", "enough");
  await conversation.send(steer("enough"));
}

describe("a conversation with a real agent", () => {
  test("goes on for ten turns, in a checkout, each input got once and in order", async () => {
    const conversation = await startConversation(server, inRepository());
    await conversation.say("turn 1", "edit a.txt two\ncount");
    for (let turn = 2; turn <= 10; turn++) await conversation.say(`turn ${turn}`, "count");
    await conversation.untilIdle();
    expect(conversation.output()).toEqual([
      "changed a.txt",
      ...Array.from({ length: 10 }, (_, at) => String(at + 1)),
    ]);
    const names = Array.from({ length: 10 }, (_, at) => `turn ${at + 1}`);
    expect(got(conversation).map(({ id }) => id)).toEqual(names);
    const inputs = await conversation.inputs();
    expect(inputs.map(({ id }) => id)).toEqual(names);
    expect(new Set(inputs.map(({ receipt }) => receipt))).toEqual(new Set(["AGENT_INPUT_RECEIPT_SEEN"]));
    expect(conversation.blocks.map(({ inputId }) => inputId)).toEqual(["turn 1", ...names]);
    const { status } = await conversation.get();
    const [{ environmentId }] = status.usedEnvironments;
    const file = join(runner.stateDir, "workspaces", environmentId, "tree", "hello", "a.txt");
    expect(readFileSync(file, "utf8")).toBe("one\ntwo\n");
    await conversation.stop();
  });

  test("takes images as files", async () => {
    const conversation = await startConversation(server);
    const image = { data: PNG, mimeType: "image/png" };
    await conversation.send({ userInput: { inputs: [{ text: { content: "image" } }, { image }] } });
    await conversation.untilOutput(`image/png of ${Buffer.from(PNG, "base64").length} bytes`);
    await conversation.stop();
  });

  test("takes a message that is steered into the turn that goes on, and the others after it", async () => {
    const conversation = await startConversation(server);
    await conversation.say("long", "slow 1000");
    await conversation.untilOutput("step 2");
    for (const id of ["first", "second", "third"]) await conversation.say(id, `echo ${id}`);
    await conversation.send(steer("second"));
    await conversation.untilOutput("steered: echo second");
    await isEnough(conversation);
    await conversation.untilIdle();
    const said = conversation.output();
    const at = said.indexOf("steered: echo second");
    expect(at).toBeGreaterThan(said.indexOf("step 2"));
    expect(said.slice(-3)).toEqual(["steered: enough", "first", "third"]);
    expect(got(conversation).map(({ id }) => id)).toEqual(["long", "second", "enough", "first", "third"]);
    expect(conversation.blocks.find(({ sequence }) => Number(sequence) === at + 1)?.inputId).toBe("long");
    await conversation.stop();
  });

  test("gets a message that two clients move where the first of them put it, until the other looks again", async () => {
    const conversation = await startConversation(server);
    await conversation.say("long", "slow 1000");
    await conversation.untilOutput("step 1");
    const names = ["a", "b", "c"];
    for (const id of names) await conversation.say(id, `echo ${id}`);
    const { id: agentExecutionId } = conversation;
    const revision = async () =>
      (await succeeded(post(server, "AgentService/ListAgentInputs", { agentExecutionId }))).queueRevision;
    const expectedQueueRevision = await revision();
    const move = (beforeUserInputId: string, expected: string) =>
      post(server, "AgentService/SendToAgentExecution", {
        agentExecutionId,
        controlInput: { moveQueuedMessage: { userInputId: "c", beforeUserInputId } },
        expectedQueueRevision: expected,
      });
    const targets = ["a", "b"];
    const answers = await Promise.all(targets.map((target) => move(target, expectedQueueRevision)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409]);
    const refused = answers.findIndex(({ status }) => status === 409);
    expect(answers[refused]?.body.code).toBe("aborted");
    await succeeded(move(targets[refused] ?? "", await revision()));
    await isEnough(conversation);
    await conversation.untilIdle();
    const order = refused === 0 ? ["c", "a", "b"] : ["a", "c", "b"];
    expect(got(conversation).map(({ id }) => id)).toEqual(["long", "enough", ...order]);
    expect(conversation.output().slice(-3)).toEqual(order);
    await conversation.stop();
  });

  test("tells usage, activity and the state of a goal", async () => {
    const conversation = await startConversation(server);
    await conversation.send({ controlInput: { goal: { set: { objective: "win" } } } });
    await conversation.say("one", "slow 2\ngoal completed");
    const { status } = await until(conversation.get, ({ status }) =>
      status.goal?.status.endsWith("_COMPLETED"),
    );
    expect(status).toMatchObject({ goal: { objective: "win" }, iterations: "2" });
    expect(got(conversation)[0]?.words).toBe("echo goal set");
    await conversation.stop();
  });

  test("is stopped in the middle of a turn, and what is queued is never delivered", async () => {
    const conversation = await startConversation(server);
    await conversation.say("long", "slow 1000");
    await conversation.untilOutput("step 2");
    await conversation.say("never", "echo never");
    await conversation.stop();
    const { status } = await conversation.untilPhase("STOPPED");
    expect(status.failureMessage).toBe("");
    expect(got(conversation).map(({ id }) => id)).toEqual(["long"]);
    await runner.untilLogged("work ended", { run: conversation.id, outcome: "stopped" });
    const answer = await post(server, "AgentService/SendToAgentExecution", {
      agentExecutionId: conversation.id,
      userInput: { inputs: [{ text: { content: "late" } }] },
    });
    expect(answer.body.code).toBe("failed_precondition");
  });

  test("ends with the failure of its program, which tells what that complained about", async () => {
    const conversation = await startConversation(server);
    await conversation.say("one", "echo before\nfail out of luck");
    const { status } = await conversation.untilPhase("STOPPED");
    expect(status).toMatchObject({
      failureReason: "AGENT_EXECUTION_FAILURE_REASON_AGENT_EXECUTION",
      failureMessage: "the agent's program ended with exit status 1: out of luck",
    });
    expect(conversation.output()).toEqual(["before"]);
  });

  test("of a parent has five of six sub-agents, of whose ends it learns once each", async () => {
    const conversation = await startConversation(server);
    await conversation.say("one", "spawn 6 echo hello / slow 1000 / leave");
    // All of them work until the last one was refused.
    await until(conversation.output, (said) => said.some((words) => words.startsWith("refused")));
    for (const { id } of (await conversation.get()).status.subagents) {
      const child = conversationOf(server, id);
      await child.untilOutput("step 1");
      await isEnough(child);
    }
    await until(
      conversation.output,
      (said) => said.filter((words) => words.startsWith("woken by")).length === 5,
    );
    const said = conversation.output();
    expect(said.slice(0, 5)).toEqual([1, 2, 3, 4, 5].map((each) => `started 1-${each}`));
    expect(said[5]).toMatch(/^refused 1-6: .*5/);
    expect(said.slice(6).toSorted()).toEqual([1, 2, 3, 4, 5].map((each) => `woken by 1-${each}`));
    const { status } = await conversation.get();
    expect(status.subagents.map((each: Body) => [each.name, each.phase])).toEqual(
      [1, 2, 3, 4, 5].map((each) => [`number ${each}`, "PHASE_STOPPED"]),
    );
    for (const { id } of status.subagents) {
      expect(got({ id }).map(({ words }) => words)).toEqual(["echo hello\nslow 1000\nleave", "enough"]);
    }
    // There is room again.
    await conversation.say("two", "spawn 1 leave");
    await conversation.untilOutput("woken by 2-1");
    await conversation.stop();
  });
});

describe("a sub-agent", () => {
  test("tells its parent what it found, and where that is not taken an error says so", async () => {
    const conversation = await startConversation(server);
    await conversation.say("one", "spawn 1 tell all done / leave\ntell nobody");
    await conversation.untilOutput("woken by 1-1");
    const [{ id }] = (await conversation.get()).status.subagents;
    await conversation.untilOutput(`${id} says all done`);
    const { agentMessage } = (await conversation.inputs()).find((input) => input.agentMessage);
    expect(agentMessage).toEqual({
      type: "TYPE_UPDATE",
      payload: "all done",
      role: "ROLE_CHILD",
      senderExecutionId: id,
    });
    expect(conversation.output()[1]).toMatch(/^error: a message to the run {2}was not taken: /);
    await conversation.stop();
  });
});

describe("a workflow with an agent", () => {
  const outputsOf = async (executionId: string) =>
    (
      await succeeded(
        post(server, "WorkflowService/ListWorkflowExecutionOutputs", {
          filter: { workflowExecutionIds: [executionId] },
        }),
      )
    ).outputs;

  test("has it do a step and answer a report, each in a run of its own that ends with it", async () => {
    const run = await startExecution(server, {
      repository: () => repository.url,
      steps: [
        { agent: { prompt: "edit a.txt {{ .Parameters.none }}" } },
        {
          report: {
            outputs: [
              { key: "lines", title: "Lines", integer: {}, command: "wc -l < a.txt" },
              { key: "word", title: "Word", string: {}, prompt: "echo  42 words  " },
            ],
          },
        },
      ].map((step, at) => (at === 0 ? { agent: { prompt: "edit a.txt two" } } : step)),
    });
    const execution = await until(run.execution, ({ status }) => /COMPLETED|STOPPED/.test(status.phase));
    const [action] = await run.actions();
    expect([execution.status.doneActionCount, action.status.failures]).toEqual([1, []]);
    const [{ values }] = await outputsOf(run.executionId);
    expect(values).toMatchObject({ lines: { intValue: "2" }, word: { stringValue: "42 words" } });
    const { agentExecutions } = await succeeded(
      post(server, "AgentService/ListAgentExecutions", {
        filter: { roles: ["AGENT_EXECUTION_ROLE_WORKFLOW"] },
      }),
    );
    expect(
      agentExecutions.map(({ metadata, status }: Body) => [metadata.workflowActionId, status.phase]),
    ).toEqual([action.id, action.id].map((id) => [id, "PHASE_STOPPED"]));
    expect(agentExecutions.map(({ status }: Body) => status.failureMessage)).toEqual(["", ""]);
  });

  test("goes on once the agent of a step works there no more", async () => {
    const alive = `grep -lzs "ENVIRONMENT_ID=$CHARTROOM_ENVIRONMENT_ID" /proc/[0-9]*/environ |
      while read -r file; do grep -qzs AGENT_EXECUTION_ID= "$file" && echo "$file"; done; echo looked`;
    const run = await startExecution(server, {
      repository: () => repository.url,
      steps: [{ agent: { prompt: "echo done" } }, { task: { command: alive } }],
    });
    await until(run.execution, ({ status }) => /COMPLETED|STOPPED/.test(status.phase));
    const [action] = await run.actions();
    expect(await readLog(server, action.id)).toBe("done\n");
    expect(await readLog(server, action.id, { stepIndex: 1 })).toBe("looked\n");
  });

  test("fails at the step whose agent fails", async () => {
    const run = await startExecution(server, {
      repository: () => repository.url,
      steps: [{ agent: { prompt: "fail no idea" } }, { task: { command: "touch after" } }],
    });
    await until(run.execution, ({ status }) => /COMPLETED|STOPPED/.test(status.phase));
    const [action] = await run.actions();
    expect(action.status.stepStatuses.map(({ phase }: Body) => phase.replace("STEP_PHASE_", ""))).toEqual([
      "FAILED",
      "CANCELLED",
    ]);
    expect(action.status.stepStatuses[0].error).toMatchObject({
      code: "WORKFLOW_ERROR_CODE_AGENT_ERROR",
      reason: "agent_failed",
      message: "the agent's program ended with exit status 1: no idea",
    });
  });
});

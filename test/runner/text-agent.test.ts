import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "@jest/globals";
import { AgentForm } from "#gen/runner/v1/work_pb.js";
import { AgentExecutionRole } from "#gen/service/v1/agent_pb.js";
import { WorkInterrupted } from "../../src/runner/protocol/lease.ts";
import type { RunningAgentOptions } from "../harness/fake-agent-service.ts";
import { createGate } from "../harness/gate.ts";
import { countWaits, runningAgents } from "../harness/running-agents.ts";

const { start } = runningAgents();

const shell = (command: string, more: Partial<RunningAgentOptions> = {}) =>
  start({ command: ["sh", "-c", command], form: AgentForm.TEXT, ...more });

describe("an agent that reads a prompt and prints an answer", () => {
  test("is started again for each turn, and its whole output is the answer", async () => {
    const agent = await shell("echo turn $CHARTROOM_AGENT_STARTS; tr a-z A-Z; printf end");
    for (const turn of [1, 2, 3]) {
      agent.say(`input ${turn}`, `hello ${turn} ü`);
      await agent.until(() => countWaits(agent) === turn + 1);
    }
    expect(agent.output().join("").replaceAll("text: ", "")).toBe(
      [1, 2, 3].map((turn) => `turn ${turn}\nHELLO ${turn} üend`).join(""),
    );
    expect(agent.seenInputIds()).toEqual(["input 1", "input 2", "input 3"]);
    expect(agent.states()).toEqual(["WAITING", ...[1, 2, 3].flatMap(() => ["RUNNING", "WAITING"])]);
  });

  test("gets what is steered when the turn is over, before it is said to wait", async () => {
    const gate = createGate();
    gate.close("one");
    const agent = await shell(`read line; echo "got $line"; [ "$line" != one ] || { ${gate.wait("one")}; }`);
    agent.say("one", "one");
    await agent.until(() => agent.output().length === 1);
    agent.say("two", "two", { steer: true });
    // It is handed out within this process, in few turns of its loop.
    for (let turn = 0; turn < 200; turn++) await nextTurn();
    gate.open("one");
    await agent.until(() => countWaits(agent) === 2);
    expect(agent.output()).toEqual(["text: got one\n", "text: got two\n"]);
    expect(agent.states()).toEqual(["WAITING", "RUNNING", "RUNNING", "WAITING"]);
  });

  test("is shown to have got nothing of what it did not read, and does not wait for more of it", async () => {
    const agent = await shell("exec 0<&-; echo done; echo deaf >&2; sleep 0.3");
    agent.say("one", "x".repeat(1_000_000));
    expect(await agent.ended).toMatchObject({
      reason: "agent_failed",
      message: "the agent's program ended with exit status 0 before it had taken its prompt: deaf",
    });
    expect(agent.output()).toEqual(["text: done\n"]);
    expect(agent.seenInputIds()).toEqual([]);
    expect(agent.states()).toEqual(["WAITING", "RUNNING"]);
  });

  test("leaves an error of a turn that fails, and goes on", async () => {
    const agent = await shell(
      'read line; echo "$line"; [ "$line" = two ] || { echo no such thing >&2; exit 4; }',
    );
    agent.say("one", "one");
    await agent.until(() => countWaits(agent) === 2);
    agent.say("two", "two");
    await agent.until(() => countWaits(agent) === 3);
    expect(agent.output()).toEqual([
      "text: one\n",
      "error: the agent's program ended with exit status 4: no such thing",
      "text: two\n",
    ]);
  });

  test("fails the run of a step with a turn that fails", async () => {
    const metadata = { role: AgentExecutionRole.WORKFLOW };
    const work = { agentExecution: { id: "01900000-0000-7000-8000-00000000000c", metadata } };
    const agent = await shell("cat >/dev/null; exit 1", { work });
    agent.say("one", "x");
    expect(await agent.ended).toMatchObject({ reason: "agent_failed" });
    expect(agent.states()).toEqual(["RUNNING"]);
  });

  test("answers no secret, wherever its output is cut", async () => {
    const half = (cut: string) => `echo "$CHARTROOM_ENVIRONMENT_TOKEN" | cut -c${cut} | tr -d '\\n'`;
    const print = `${half("1-9")}; sleep 0.4; ${half("10-")}`;
    const agent = await shell(`cat >/dev/null; ${print}`);
    agent.say("one", "x");
    await agent.until(() => countWaits(agent) === 2);
    expect(agent.output()).toEqual(["text: ***"]);
  });

  test("gets images by their paths, settings by variables, and everything else in words", async () => {
    const agent = await shell('cat; echo "|$CHARTROOM_AGENT_MODEL|$CHARTROOM_AGENT_TURN_MODES"');
    const data = Buffer.from("\x89PNG", "latin1");
    const inputs = [
      { input: { case: "text" as const, value: { content: "look" } } },
      { input: { case: "image" as const, value: { data, mimeType: "image/png" } } },
    ];
    agent.send({
      input: { id: "a", input: { case: "userInput", value: { inputs } } },
      turnOptions: { modes: [2] },
      extAgentSettings: { model: 9 },
    });
    agent.send({ input: { id: "b", input: { case: "agentMessage", value: { payload: "done" } } } });
    const payload = { case: "timer" as const, value: {} };
    agent.send({ input: { id: "c", input: { case: "wakeEvent", value: { interestId: "t", payload } } } });
    const action = { case: "set" as const, value: { objective: "win" } };
    const control = { case: "goal" as const, value: { action } };
    agent.send({ input: { id: "d", input: { case: "controlInput", value: { control } } } });
    await agent.until(() => agent.seenInputIds().length === 4 && countWaits(agent) === 2);
    expect(agent.output()).toEqual([
      expect.stringMatching(/^text: look\n\nImage: \/.*\.png\|9\|planning\n$/),
      "text: done||\n",
      "text: Go on: the timer t has run out.||\n",
      "text: Your goal from now on: win||\n",
    ]);
  });

  test("is not run where it is defined by the API and the operator does not allow that", async () => {
    const agent = await shell("cat", { work: { apiDefined: true } });
    expect(await agent.ended).toMatchObject({
      reason: "policy_unsupported",
      message: expect.stringContaining("--allow-api-agents"),
    });
    expect(agent.reports).toEqual([]);
  });

  test("is ended with its run", async () => {
    const agent = await shell("cat; sleep 300");
    agent.say("one", "x");
    await agent.until(() => agent.output().length === 1);
    agent.assignment.lease.interrupt("stop");
    expect(await agent.ended).toBeInstanceOf(WorkInterrupted);
    expect(countWaits(agent)).toBe(1);
  });
});

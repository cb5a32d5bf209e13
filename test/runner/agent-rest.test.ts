import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { AgentForm } from "#gen/runner/v1/work_pb.js";
import {
  AgentOutputBlock_FileChange_Kind as FileChange,
  AgentExecution_Phase as Phase,
} from "#gen/service/v1/agent_pb.js";
import { WorkInterrupted } from "../../src/runner/protocol/lease.ts";
import type { RunningAgent, RunningAgentOptions } from "../harness/fake-agent-service.ts";
import { ROOT } from "../harness/program.ts";
import { countWaits } from "../harness/running-agents.ts";
import { scriptedAcpAgents } from "../harness/scripted-acp-agent.ts";

const RUN = "01900000-0000-7000-8000-00000000000c";

const { start, scripted, ask } = scriptedAcpAgents();

/** The scripted agent of JSON lines. */
const scriptedLines = (more: Partial<RunningAgentOptions> = {}) =>
  start({ command: [process.execPath, join(ROOT, "examples/agents/scripted-agent.js")], ...more });

/** How a run is leased again that has given its slot back. */
const RESTED = {
  keepWorkspace: true,
  work: { agentExecution: { id: RUN, status: { phase: Phase.WAITING_FOR_INPUT } } },
};

/** Has the service ask for the slot, as its answers to renewals and reports do; returns how the runner's part ended. */
async function rest({ assignment, ended }: RunningAgent): Promise<unknown> {
  assignment.lease.applyResponse({ stop: false, giveBack: true });
  return ended;
}

const GIVEN_BACK = expect.objectContaining({ interruption: "rest" });

/** What was reported on whether another process can go on, in order. */
const claims = ({ reports }: RunningAgent) =>
  reports.flatMap(({ canResume }) => (canResume === undefined ? [] : [canResume]));

/** Says something to an agent that was leased again; resolves with its answer once the turn is over. */
async function answer(agent: RunningAgent, text: string): Promise<readonly string[]> {
  agent.say("next", text);
  await agent.until(() => countWaits(agent) === 1);
  return agent.output();
}

const isAlive = (processId: number) => {
  try {
    return process.kill(processId, 0);
  } catch {
    return false;
  }
};

describe("an agent of JSON lines", () => {
  test("has shown that it can go on once it says so, not before", async () => {
    const agent = await scriptedLines();
    await ask(agent, "echo one");
    expect(claims(agent)).toEqual([]);
    await ask(agent, "resumable");
    expect(claims(agent)).toEqual([true]);
  });

  test("is asked to stop when the slot is asked back, and its program is gone when that is given back", async () => {
    const code = `
      process.stdin.on("data", (bytes) => {
        for (const line of String(bytes).trim().split("\\n")) {
          const { type } = JSON.parse(line);
          const say = (content) => console.log(JSON.stringify({ type: "text", content }));
          if (type === "start") say(String(process.pid));
          if (type === "stop") { say("asked to stop"); process.exit(0); }
        }
      });`;
    const agent = await start({ command: [process.execPath, "-e", code] });
    await agent.until(() => agent.output().length === 1);
    const processId = Number(agent.output()[0]?.replace("text: ", ""));
    expect(isAlive(processId)).toBe(true);
    const end = await rest(agent);
    expect(end).toBeInstanceOf(WorkInterrupted);
    expect(end).toEqual(GIVEN_BACK);
    expect(agent.output()[1]).toBe("text: asked to stop");
    expect(isAlive(processId)).toBe(false);
  });

  test("is started again in its environment with the next input, and nothing is said of the wait", async () => {
    const first = await scriptedLines();
    await ask(first, "edit kept.txt words");
    expect(await rest(first)).toEqual(GIVEN_BACK);
    const second = await scriptedLines(RESTED);
    const said = await answer(second, "edit kept.txt more\nshow");
    expect(said[0]).toBe("fileChange: kept.txt");
    expect(second.reports.flatMap(({ blocks }) => blocks)[0]?.block.value).toMatchObject({
      kind: FileChange.MODIFIED,
    });
    expect(JSON.parse(said[1]?.replace("text: ", "") ?? "")).toMatchObject({ runId: RUN, starts: 2 });
    expect(second.states()).toEqual(["RUNNING", "WAITING"]);
  });
});

describe("an agent of the protocol", () => {
  test.each(["resume", "load"])("goes on with its session by %s when the next input comes", async (way) => {
    const first = await scripted({ [way]: true });
    await ask(first, "echo the first words");
    // Reported with its first wait, and again after the turn.
    expect(claims(first)).toEqual([true, true]);
    expect(await rest(first)).toEqual(GIVEN_BACK);
    const second = await scripted({ [way]: true }, RESTED);
    expect(await answer(second, "remember")).toEqual(["text: echo the first words"]);
    expect(second.states()).toEqual(["RUNNING", "WAITING"]);
    expect(claims(second)).toEqual([true, true]);
  });

  test("has not shown that it can go on where it offers neither", async () => {
    const agent = await scripted();
    await ask(agent, "echo hello");
    expect(claims(agent)).toEqual([false, false]);
  });

  test("has shown that it cannot where it could not go on with an earlier session", async () => {
    const first = await scripted({ resume: true });
    // Nothing was said, so that the agent has kept nothing of the session.
    await first.until(() => countWaits(first) === 1);
    first.assignment.lease.interrupt("lost");
    await first.ended;
    const second = await scripted({ resume: true }, { keepWorkspace: true });
    await ask(second, "echo hello");
    expect(second.output()[0]).toMatch(/^error: the agent could not go on with its session/);
    expect(claims(second)).toEqual([false, false]);
  });
});

test("an agent of plain text can always go on between turns, and is not started until the next", async () => {
  // It reads its prompt: a program that has ended before has not taken its input.
  const command = ["sh", "-c", "cat > /dev/null; echo turn $CHARTROOM_AGENT_STARTS"];
  const first = await start({ command, form: AgentForm.TEXT });
  await ask(first, "one");
  expect(claims(first)).toEqual([true]);
  expect(await rest(first)).toEqual(GIVEN_BACK);
  const second = await start({ command, form: AgentForm.TEXT, ...RESTED });
  expect(await answer(second, "two")).toEqual(["text: turn 2\n"]);
});

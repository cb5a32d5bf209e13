import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "@jest/globals";
import { ReportAgentRequestSchema } from "#gen/runner/v1/agent_work_service_pb.js";
import { AgentExecutionRole } from "#gen/service/v1/agent_pb.js";
import { createCheck } from "../../src/rpc/check.ts";
import { readProcessStat } from "../../src/runner/process/process-group.ts";
import { WorkInterrupted } from "../../src/runner/protocol/lease.ts";
import { type RunningAgentOptions, refusal } from "../harness/fake-agent-service.ts";
import { ROOT } from "../harness/program.ts";
import { countWaits, runningAgents } from "../harness/running-agents.ts";
import { temporaryFolder } from "../harness/server.ts";

const ID = "01900000-0000-7000-8000-000000000001";
const check = createCheck();
const SCRIPTED = join(ROOT, "examples/agents/scripted-agent.js");

const { start, workspaces } = runningAgents();
const scripted = (more: Partial<RunningAgentOptions> = {}) =>
  start({ command: [process.execPath, SCRIPTED], ...more });

/** An agent that is a line of JavaScript: `say` writes a line of the form, `got` gets each that comes. */
const inline = (code: string, more: Partial<RunningAgentOptions> = {}) => {
  const prelude = `
    const say = (line) => process.stdout.write(JSON.stringify(line) + "\\n");
    const print = (text) => process.stdout.write(text);
    let got = () => {};
    let begun = "";
    process.stdin.on("data", (bytes) => {
      const lines = (begun + bytes).split("\\n");
      begun = lines.pop();
      for (const line of lines) got(JSON.parse(line));
    });`;
  return start({ command: [process.execPath, "-e", prelude + code], ...more });
};

describe("a conversation", () => {
  test("is reported turn by turn: what the agent got, what it answered, and that it waits", async () => {
    const agent = await scripted();
    await agent.until(() => countWaits(agent) === 1);
    agent.say("one", "echo hello\ncount");
    await agent.until(() => countWaits(agent) === 2);
    agent.say("two", "edit a.txt words\ntool grep foo\nnonsense");
    await agent.until(() => countWaits(agent) === 3);
    expect(agent.states()).toEqual(["WAITING", "RUNNING", "WAITING", "RUNNING", "WAITING"]);
    expect(agent.seenInputIds()).toEqual(["one", "two"]);
    expect(agent.output()).toEqual([
      "text: hello\n",
      "text: 1\n",
      "fileChange: a.txt",
      'toolRequest: grep {"words":"foo"}',
      "error: there is no command nonsense",
    ]);
    const blocks = agent.reports.flatMap((report) => report.blocks);
    expect(blocks.map(({ inputId }) => inputId)).toEqual(["one", "one", "two", "two", "two"]);
  });

  test("goes on after its stream was broken off, and hands out nothing twice", async () => {
    const agent = await scripted();
    for (let turn = 1; turn <= 5; turn++) {
      agent.say(`input ${turn}`, "count");
      agent.dropInputStream();
      await agent.until(() => agent.output().length === turn);
      agent.dropInputStream();
    }
    expect(agent.output()).toEqual([1, 2, 3, 4, 5].map((count) => `text: ${count}\n`));
    expect(agent.seenInputIds()).toEqual([1, 2, 3, 4, 5].map((turn) => `input ${turn}`));
  });

  test("has tool calls, plans, thoughts, questions and usage", async () => {
    const agent = await inline(`
      got = ({ type, id }) => {
        if (type !== "user_input") return;
        say({ type: "seen", id });
        say({ type: "thought", content: "Hm." });
        say({ type: "plan", entries: [{ content: "read", state: "running", priority: "high" }, { content: "write" }] });
        say({
          type: "tool_call", id: "a", title: "Read", kind: "read", state: "waiting_for_approval",
          locations: [{ path: "a.txt", line: 3 }], input: { path: "a.txt" }, result: "words",
          diffs: [{ path: "a.txt", kind: "modified", diff: "-a\\n+b" }],
        });
        say({ type: "question", id: "q", message: "Which?", schema: { type: "object" } });
        say({ type: "usage_update", inputTokens: 7, contextUsed: 1, contextSize: 9, cost: { amount: 0.5, currency: "EUR" } });
        for (const wrong of [
          { type: "tool_call", id: "" }, { type: "tool_call", id: "a", state: "lost" },
          { type: "tool_call", id: "a", locations: [{ path: "a", line: -1 }] }, { type: "plan", entries: {} },
          { type: "usage_update", cost: { amount: -1, currency: "EUR" } }, { type: "usage_update", inputTokens: -1 },
        ]) say(wrong);
        say({ type: "turn_done" });
      };`);
    agent.say("one", "x");
    await agent.until(() => countWaits(agent) === 2);
    const blocks = agent.reports.flatMap((report) => report.blocks).map(({ block }) => block);
    expect(blocks.slice(0, 5)).toMatchObject([
      { case: "thought", value: { content: "Hm." } },
      {
        case: "plan",
        value: { entries: [{ content: "read", state: 2, priority: 3 }, { content: "write" }] },
      },
      {
        case: "toolCall",
        value: {
          id: "a",
          title: "Read",
          kind: 1,
          state: 2,
          locations: [{ path: "a.txt", line: 3 }],
          input: '{"path":"a.txt"}',
          result: "words",
          diffs: [{ path: "a.txt", kind: 2, diff: "-a\n+b" }],
        },
      },
      { case: "question", value: { id: "q", message: "Which?", schema: '{"type":"object"}', state: 1 } },
      {
        case: "usage",
        value: { inputTokens: 7n, contextUsed: 1n, contextSize: 9n, cost: { amount: 0.5, currency: "EUR" } },
      },
    ]);
    expect(blocks.slice(5).map((block) => block.case)).toEqual(Array(6).fill("error"));
  });

  test("cuts tool calls, plans and questions at their limits", async () => {
    const agent = await inline(`
      got = ({ type, id }) => {
        if (type !== "user_input") return;
        say({ type: "seen", id });
        const long = "x".repeat(70_000);
        say({
          type: "tool_call", id: long, title: long, locations: Array(40).fill({ path: long.slice(0, 2_000) }), input: long,
          result: long, diffs: Array(9).fill({ path: long.slice(0, 2_000), diff: long.slice(0, 40_000) }),
        });
        say({ type: "plan", entries: Array(70).fill({ content: long.slice(0, 2_000) }) });
        say({ type: "question", id: "q", message: long, schema: long });
        say({ type: "turn_done" });
      };`);
    agent.say("one", "x");
    await agent.until(() => countWaits(agent) === 2);
    const reports = agent.reports.filter(({ blocks }) => blocks.length > 0);
    for (const report of reports)
      expect(() => check(ReportAgentRequestSchema, { ...report, leaseId: ID, fence: 1n })).not.toThrow();
    const blocks = reports.flatMap((report) => report.blocks).map(({ block }) => block.value);
    expect(blocks).toMatchObject([
      { title: "x".repeat(1_024), input: "x".repeat(65_536), result: "x".repeat(65_536) },
      { entries: Array(64).fill({ content: "x".repeat(1_024) }) },
      { message: "x".repeat(4_096), schema: "" },
    ]);
  });

  test("takes what is steered into the turn that goes on", async () => {
    const agent = await scripted();
    // Far longer than this process may stall before it hears of the first step.
    const steps = Array.from({ length: 20 }, (_, index) => `text: step ${index + 1}\n`);
    agent.say("one", "slow 20");
    await agent.until(() => agent.output().length > 0);
    agent.say("two", "a word", { steer: true });
    await agent.until(() => countWaits(agent) === 2);
    const steered = agent.output().indexOf("text: steered: a word\n");
    expect(agent.output()).toEqual(steps.toSpliced(steered, 0, "text: steered: a word\n"));
    expect(steered).toBeGreaterThan(0);
    expect(steered).toBeLessThan(steps.length);
    expect(agent.states()).toEqual(["WAITING", "RUNNING", "WAITING"]);
  });

  test("goes on with what came too late for a turn, and waits only after it", async () => {
    const agent = await inline(`
      let first;
      got = ({ type, id }) => {
        if (type !== "user_input") return;
        if (!first) { first = id; say({ type: "seen", id }); say({ type: "text", content: "half" }); return; }
        // As if the second had come when the turn was over already.
        say({ type: "turn_done" }); say({ type: "seen", id }); say({ type: "text", content: "late" }); say({ type: "turn_done" });
      };`);
    agent.say("one", "x");
    await agent.until(() => agent.output().length === 1);
    agent.say("two", "y", { steer: true });
    await agent.until(() => agent.states().length === 3);
    expect(agent.states()).toEqual(["WAITING", "RUNNING", "WAITING"]);
    expect(agent.reports.flatMap(({ blocks }) => blocks).map(({ inputId }) => inputId)).toEqual([
      "one",
      "two",
    ]);
  });

  test("hands images over as files, the same one once", async () => {
    const agent = await scripted();
    const data = Buffer.from("\x89PNG\r\n\x1a\nrest", "latin1");
    const image = { input: { case: "image" as const, value: { data, mimeType: "image/png" } } };
    const words = { input: { case: "text" as const, value: { content: "image" } } };
    const inputs = [words, image, image];
    agent.send({ input: { id: "one", input: { case: "userInput", value: { inputs } } } });
    await agent.until(() => agent.output().length === 2);
    expect(agent.output()).toEqual(["text: image/png of 12 bytes\n", "text: image/png of 12 bytes\n"]);
    const [environment = ""] = readdirSync(workspaces());
    const agents = join(workspaces(), environment, "agents");
    const [run = ""] = readdirSync(agents);
    const images = readdirSync(join(agents, run, "images"));
    expect(images).toEqual([expect.stringMatching(/^[0-9a-f]{64}\.png$/)]);
    expect(readFileSync(join(agents, run, "images", images[0] ?? ""))).toEqual(data);
  });

  test("tells what an agent waits for, what it uses and the state of its goal", async () => {
    const agent = await scripted();
    agent.say("one", "goal completed\nslow 1\nwait 3");
    await agent.until(() => countWaits(agent) === 2);
    const report = Object.assign(
      {},
      ...agent.reports.map(({ usage, ...rest }) => ({ ...rest, ...(usage && { usage }) })),
    );
    expect(report).toMatchObject({
      interests: [{ id: "timer-1", interest: { case: "timer", value: { seconds: 3n } } }],
      usage: { iterations: 1n },
    });
    expect(agent.reports.map(({ goalStatus }) => goalStatus)).toContain(3);
    expect(agent.reports.map(({ currentActivity }) => currentActivity)).toContain("step 1 of 1");
  });

  test("passes on messages of other runs, news and orders, each in its words", async () => {
    const agent = await inline(
      `got = (line) => { if (line.type !== "start") { say({ type: "seen", id: line.id }); say({ type: "text", content: JSON.stringify(line) }); } };`,
    );
    const message = { type: 2, role: 2, senderExecutionId: "child", payload: "done" };
    agent.send({ input: { id: "a", input: { case: "agentMessage", value: message } } });
    const wake = { interestId: "t", payload: { case: "subAgent" as const, value: { executionId: "child" } } };
    agent.send({ input: { id: "b", input: { case: "wakeEvent", value: wake } } });
    const set = { case: "set" as const, value: { objective: "win", status: 1 } };
    const goal = { case: "goal" as const, value: { action: set } };
    agent.send({
      input: { id: "c", input: { case: "controlInput", value: { control: goal } } },
      steer: true,
    });
    const compact = { case: "compact" as const, value: {} };
    agent.send({ input: { id: "d", input: { case: "controlInput", value: { control: compact } } } });
    agent.say("e", "x", {
      turnOptions: { modes: [0, 2] },
      extAgentSettings: { model: 7, reasoningEffort: 4 },
    });
    await agent.until(() => agent.output().length === 5);
    expect(agent.output().map((line) => JSON.parse(line.replace("text: ", "")))).toEqual([
      { type: "agent_message", kind: "complete", role: "child", from: "child", payload: "done", id: "a" },
      { type: "wake", interestId: "t", subAgent: { executionId: "child" }, id: "b" },
      {
        type: "control",
        control: "goal",
        action: "set",
        objective: "win",
        status: "active",
        id: "c",
        steer: true,
      },
      { type: "control", control: "compact", id: "d" },
      {
        type: "user_input",
        inputs: [{ text: "x" }],
        id: "e",
        modes: ["planning"],
        settings: { model: 7, reasoningEffort: "extra_high" },
      },
    ]);
  });

  test("starts sub-agents and tells the agent what came of each", async () => {
    const agent = await scripted({
      onSubagent: ({ key, name, prompt }) => {
        if (key === "1-2") throw refusal("no more of them");
        return `${name} to ${prompt}`;
      },
    });
    agent.say("one", "spawn 3 echo hi");
    await agent.until(() => countWaits(agent) === 2);
    expect(agent.output()).toEqual([
      "text: started 1-1\n",
      "text: refused 1-2: no more of them\n",
      "text: started 1-3\n",
    ]);
    expect(agent.reports.at(-1)?.interests.map(({ interest }) => interest.value)).toEqual([
      "number 1 to echo hi",
      "number 3 to echo hi",
    ]);
  });
});

describe("an agent that breaks the form", () => {
  test("has that reported as errors, and is read on", async () => {
    const agent = await inline(`
      print("no JSON\\n\\n");
      print("[1]\\n" + "x".repeat(1_048_577) + "\\n" + "\\xff\\n");
      say({ type: "dance" });
      say({ type: "text" });
      say({ type: "seen", id: "never" });
      say({ type: "goal", status: "__proto__" });
      say({ type: "wait", interests: [{ id: "x" }] });
      say({ type: "usage", iterations: "many" });
      say({ type: "text", content: "still here" });`);
    await agent.until(() => agent.output().includes("text: still here"));
    const errors = agent.output().slice(0, -1);
    const breaks = (what: string) =>
      expect.stringMatching(`^error: the agent's output breaks its form: .*${what}`);
    expect(errors).toEqual([
      breaks("no JSON"),
      breaks("it is no JSON object: \\[1\\]"),
      breaks("a line of 1048577 bytes was dropped"),
      breaks("not understood"),
      breaks('its type is "dance"'),
      breaks("its content is no text"),
      breaks("that it was not given: never"),
      breaks("its status is not a known value"),
      breaks("an interest lacks"),
      breaks("its usage cannot be read"),
    ]);
  });

  test("has no more of it reported after a while", async () => {
    const agent = await inline(`print("x\\n".repeat(5_000)); say({ type: "text", content: "done" });`);
    await agent.until(() => agent.output().includes("text: done"));
    expect(agent.output()).toHaveLength(101);
    expect(agent.output()[99]).toMatch(/no more of this kind is reported$/);
  });

  test("does not end a turn whose input it has not confirmed", async () => {
    const agent = await inline(`got = ({ type, id }) => {
      if (type !== "user_input") return;
      say({ type: "turn_done" });
      say({ type: "text", content: "reported" });
      say({ type: "seen", id }); say({ type: "turn_done" });
    };`);
    agent.say("one", "x");
    await agent.until(() => countWaits(agent) === 2);
    expect(agent.output()).toEqual([
      expect.stringMatching(/a turn was ended whose input was not confirmed/),
      "text: reported",
    ]);
    expect(agent.states()).toEqual(["WAITING", "RUNNING", "WAITING"]);
  });

  test("is reported in pieces that the service takes: texts cut nowhere, others at their limits", async () => {
    const agent = await inline(`
      say({ type: "text", content: "😀".repeat(40_000) + "end" });
      say({ type: "text", content: "" });
      say({ type: "file_change", path: "p".repeat(2_000), diff: "d".repeat(70_000) });
      say({ type: "error", message: "e".repeat(5_000) });
      say({ type: "activity", text: "a".repeat(300) });`);
    await agent.until(() => agent.reports.some(({ currentActivity }) => currentActivity !== ""));
    const said = agent.output();
    expect(said.map((line) => line.length)).toEqual([
      "text: ".length + 65_536,
      "text: ".length + 80_000 + 3 - 65_536,
      "fileChange: ".length + 1_024,
      "error: ".length + 4_096,
    ]);
    expect(said.slice(0, 2).join("").replaceAll("text: ", "")).toBe(`${"😀".repeat(40_000)}end`);
    expect(agent.reports.find(({ currentActivity }) => currentActivity)?.currentActivity).toHaveLength(256);
  });
});

describe("an agent that was started again", () => {
  test("says what it waits for without any input", async () => {
    const interests = [{ id: "tea", timer: "3s" }];
    const agent = await inline(
      `got = ({ type }) => type === "start" && say(${JSON.stringify({ type: "wait", interests })});`,
    );
    await agent.until(() => agent.reports.some((report) => report.interests.length > 0));
    expect(agent.states()).toEqual(["WAITING", "RUNNING", "WAITING"]);
  });
});

describe("a report that the service refuses", () => {
  test("for what the agent waits for is made without that, and says so", async () => {
    const agent = await scripted({
      onReport: ({ interests }) => {
        if (interests.length > 0) throw refusal("that cannot fire");
      },
    });
    agent.say("one", "echo words\nwait 3");
    await agent.until(() => countWaits(agent) === 2);
    expect(agent.output()).toEqual([
      "text: words\n",
      "error: the service refused what the agent reported: that cannot fire",
    ]);
  });

  test("whatever is left out ends the agent", async () => {
    const agent = await scripted({
      onReport: ({ blocks }) => {
        if (blocks.length > 0) throw refusal("no");
      },
    });
    agent.say("one", "echo words\nslow 1000");
    expect(await agent.ended).toMatchObject({ rawMessage: "no" });
  });
});

describe("the end", () => {
  test("of a program by itself and between turns is well", async () => {
    const agent = await inline(`process.stdin.destroy(); say({ type: "text", content: "bye" });`);
    expect(await agent.ended).toBeUndefined();
    expect(agent.output()).toEqual(["text: bye"]);
  });

  test.each([
    ["with a status", "process.exitCode = 3", "ended with exit status 3"],
    ["by a signal", 'process.kill(process.pid, "SIGKILL")', "was ended by SIGKILL"],
  ])("%s is a failure that tells what it complained about, without secrets", async (_name, code, how) => {
    const agent = await inline(
      `process.stdin.destroy();
       require("fs").writeSync(2, "x".repeat(10_000) + process.env.CHARTROOM_ENVIRONMENT_TOKEN + "\\nthe last words\\n"); ${code}`,
    );
    const failure = await agent.ended;
    expect(failure).toMatchObject({ name: "WorkFailure", reason: "agent_failed" });
    const { message } = failure as Error;
    expect(message).toMatch(new RegExp(`^the agent's program ${how}: x+\\*\\*\\*\\nthe last words$`));
    expect(message.length).toBe(4_096);
  });

  test("is attributed to a model that cannot be reached, where the agent says so", async () => {
    const agent = await inline(`process.stdin.destroy();
      say({ type: "error", message: "no answer", reason: "model_unreachable" });
      process.exitCode = 1;`);
    expect(await agent.ended).toMatchObject({ reason: "model_unreachable" });
    expect(agent.output()).toEqual(["error: no answer"]);
  });

  test("in the middle of a turn is a failure whatever the status", async () => {
    const agent = await inline(`got = ({ type, id }) => type === "user_input" && process.exit(0);`);
    agent.say("one", "x");
    expect(await agent.ended).toMatchObject({ message: "the agent's program ended with exit status 0" });
    expect(agent.seenInputIds()).toEqual([]);
  });

  test("of a program that is not there is reported as such", async () => {
    const agent = await start({ command: ["/no/such/program"] });
    expect(await agent.ended).toMatchObject({ reason: "command_not_started" });
    expect(agent.states()).toEqual([]);
  });

  test("comes soon after the agent was asked to stop, and its last words are reported", async () => {
    const agent = await inline(`got = ({ type }) => {
      if (type === "stop") { say({ type: "text", content: "stopping" }); process.exit(0); }
      say({ type: "text", content: type });
    };`);
    await agent.until(() => agent.output().length === 1);
    agent.assignment.lease.interrupt("stop");
    expect(await agent.ended).toBeInstanceOf(WorkInterrupted);
    expect(agent.output()).toEqual(["text: start", "text: stopping"]);
  });

  test("comes also to an agent that does not listen, and to what it left behind", async () => {
    const file = join(temporaryFolder(), "alive");
    const agent = await inline(`
      process.on("SIGTERM", () => {});
      const { pid } = require("child_process").spawn("sh", ["-c", "trap '' TERM; while :; do sleep 0.1; done"], { stdio: "ignore" });
      require("fs").writeFileSync(${JSON.stringify(file)}, process.pid + " " + pid);
      process.stdin.destroy(); setInterval(() => {}, 1_000); say({ type: "text", content: "up" });`);
    await agent.until(() => agent.output().length === 1);
    agent.assignment.lease.interrupt("stop");
    expect(await agent.ended).toBeInstanceOf(WorkInterrupted);
    const pids = readFileSync(file, "utf8").split(" ");
    const states = await Promise.all(pids.map(async (pid) => (await readProcessStat(pid))?.state ?? "gone"));
    expect(states).toEqual([expect.stringMatching(/gone|Z|X/), expect.stringMatching(/gone|Z|X/)]);
  });

  test("comes when the lease is lost, and nothing is reported any more", async () => {
    const agent = await scripted();
    agent.say("one", "slow 1000");
    await agent.until(() => agent.output().length >= 2);
    const count = agent.reports.length;
    agent.assignment.lease.interrupt("lost");
    expect(await agent.ended).toBeInstanceOf(WorkInterrupted);
    expect(agent.reports.length).toBe(count);
  });
});

describe("the agent of a step", () => {
  const metadata = { role: AgentExecutionRole.WORKFLOW };
  const work = { agentExecution: { id: "01900000-0000-7000-8000-00000000000c", metadata } };

  test("waits when it has done its task, also where its program ends then, until it is stopped", async () => {
    const agent = await scripted({ work });
    agent.say("one", "echo done\nleave");
    await agent.until(() => countWaits(agent) === 1);
    expect(agent.states()).toEqual(["RUNNING", "WAITING"]);
    const early = Promise.race([agent.ended, delay(500, "goes on")]);
    expect(await early).toBe("goes on");
    agent.assignment.lease.interrupt("stop");
    expect(await agent.ended).toBeInstanceOf(WorkInterrupted);
  });

  test("has failed where its program ends before it received anything", async () => {
    const agent = await inline("process.stdin.destroy();", { work });
    expect(await agent.ended).toMatchObject({ reason: "agent_failed" });
  });

  test("is not started again: what it did is not known", async () => {
    const agent = await scripted({ work });
    agent.say("one", "slow 1000");
    await agent.until(() => agent.output().length > 0);
    agent.assignment.lease.interrupt("lost");
    await agent.ended;
    const again = await scripted({ work, keepWorkspace: true });
    expect(await again.ended).toMatchObject({ reason: "agent_interrupted" });
    expect(again.reports).toEqual([]);
  });
});

describe("an agent's program", () => {
  test("receives its run, its policies and its settings, and finds them in its environment", async () => {
    const agent = await inline(
      `got = (line) => {
        const variables = Object.entries(process.env).filter(([name]) => name.startsWith("CHARTROOM_"));
        say({ type: "text", content: JSON.stringify({ line, variables: Object.fromEntries(variables) }) });
      };`,
      {
        work: {
          variables: { EXTRA: "1", CHARTROOM_AGENT_MODE: "none" },
          conversationId: "01900000-0000-7000-8000-00000000000a",
          agentExecution: {
            id: "01900000-0000-7000-8000-00000000000c",
            metadata: {
              sessionId: "s",
              parentExecutionId: "p",
              resumedFrom: "01900000-0000-7000-8000-00000000000b",
            },
            spec: {
              desiredPhase: 20,
              extAgentSettings: { model: 2, serviceTier: 1 },
              codeContext: { pullRequest: { id: "7" } },
            },
            status: { phase: 20, mode: 2, goal: { objective: "win" } },
          },
        },
        policies: {
          agentPolicy: { mcpDisabled: true, commandDenyList: ["rm -rf"], scmToolsAllowedGroupId: "g" },
        },
      },
    );
    await agent.until(() => agent.output().length === 1);
    const { line, variables } = JSON.parse(agent.output()[0]?.replace("text: ", "") ?? "");
    const policies = {
      mcpDisabled: true,
      commandDenyList: ["rm -rf"],
      scmToolsDisabled: true,
      scmToolsAllowedGroupId: "g",
    };
    expect(line).toEqual({
      type: "start",
      runId: "01900000-0000-7000-8000-00000000000c",
      resumedFrom: "01900000-0000-7000-8000-00000000000b",
      conversationId: "01900000-0000-7000-8000-00000000000a",
      sessionId: "s",
      parentRunId: "p",
      subagentRunIds: [],
      mode: "planning",
      goal: "win",
      settings: { model: 2, serviceTier: "fast" },
      policies,
      starts: 1,
    });
    expect(variables).toMatchObject({
      CHARTROOM_AGENT_EXECUTION_ID: line.runId,
      CHARTROOM_AGENT_CONVERSATION_ID: line.conversationId,
      CHARTROOM_AGENT_RESUMED_FROM: line.resumedFrom,
      CHARTROOM_AGENT_MODE: "planning",
      CHARTROOM_AGENT_MODEL: "2",
      CHARTROOM_AGENT_REASONING_EFFORT: "",
      CHARTROOM_AGENT_MCP_DISABLED: "true",
      CHARTROOM_AGENT_COMMAND_DENY_LIST: '["rm -rf"]',
      CHARTROOM_AGENT_SCM_TOOLS_DISABLED: "true",
      CHARTROOM_ENVIRONMENT_TOKEN: "***",
    });
    expect(JSON.parse(readFileSync(variables.CHARTROOM_PULL_REQUEST, "utf8"))).toMatchObject({ id: "7" });
  });

  test("counts its starts in its environment, and says nothing of a wait that goes on", async () => {
    const first = await scripted();
    await first.until(() => countWaits(first) === 1);
    first.assignment.lease.interrupt("drain");
    await first.ended;
    const again = await scripted({
      keepWorkspace: true,
      work: {
        agentExecution: { id: "01900000-0000-7000-8000-00000000000c", status: { phase: 30 } },
      },
    });
    again.say("one", "show");
    await again.until(() => again.output().length === 1);
    expect(JSON.parse(again.output()[0]?.replace("text: ", "") ?? "")).toMatchObject({ starts: 2 });
    expect(again.states()[0]).toBe("RUNNING");
  });

  test("waits while the service does not take what it says", async () => {
    const gate = Promise.withResolvers<void>();
    const file = join(temporaryFolder(), "written");
    const agent = await inline(
      `const { writeFileSync } = require("fs");
       const line = JSON.stringify({ type: "text", content: "x".repeat(60_000) }) + "\\n";
       for (let n = 1; n <= 300; n++) { require("fs").writeSync(1, line); writeFileSync(${JSON.stringify(file)}, String(n)); }`,
      { onReport: ({ blocks }) => (blocks.length > 0 ? gate.promise : undefined) },
    );
    let before = -1;
    // It stops once the pipe and the reports that wait are full.
    for (let now = 0; now !== before || now === 0; ) {
      before = now;
      await delay(400);
      now = existsSync(file) ? Number(readFileSync(file, "utf8")) : 0;
    }
    expect(before).toBeLessThan(100);
    gate.resolve();
    await agent.until(() => agent.output().length === 300);
  });
});

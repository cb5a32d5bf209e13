// biome-ignore-all lint/suspicious/noTemplateCurlyInString: names of secrets are written so.
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { AgentForm } from "#gen/runner/v1/work_pb.js";
import { AgentExecution_Phase as Phase } from "#gen/service/v1/agent_pb.js";
import { WorkFailure } from "../../src/runner/protocol/work-failure.ts";
import type { RunningAgent } from "../harness/fake-agent-service.ts";
import { countWaits } from "../harness/running-agents.ts";
import { blocksOf, call, scriptedAcpAgents, update } from "../harness/scripted-acp-agent.ts";
import { temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";

const RUN = "01900000-0000-7000-8000-00000000000c";

const { start, scripted, tree, ask, lastInput } = scriptedAcpAgents();

describe("a conversation", () => {
  test("is reported turn by turn, in one session", async () => {
    const agent = await scripted();
    await agent.until(() => countWaits(agent) === 1);
    expect(await ask(agent, "echo hello")).toEqual(["text: hello\n"]);
    expect(await ask(agent, "echo again", "remember")).toEqual(["text: again\necho hello"]);
    expect(agent.states()).toEqual(["WAITING", "RUNNING", "WAITING", "RUNNING", "WAITING"]);
    expect(agent.seenInputIds()).toEqual([`input ${lastInput() - 1}`, `input ${lastInput()}`]);
    const [shown = ""] = await ask(agent, "show");
    expect(shown).toContain('initialize [1,{"readTextFile":true,"writeTextFile":true},true]');
    expect(shown).toContain("new []");
  });

  test("has every kind of update as blocks", async () => {
    const agent = await scripted();
    const content = (text: string) => ({ type: "text", text });
    await ask(
      agent,
      update({ sessionUpdate: "agent_thought_chunk", content: content("Hm.") }),
      update({
        sessionUpdate: "plan",
        entries: [
          { content: "read", priority: "high", status: "completed" },
          { content: "write", priority: "low", status: "in_progress" },
        ],
      }),
      update({
        sessionUpdate: "tool_call",
        toolCallId: "a",
        title: "Edit a",
        kind: "edit",
        status: "pending",
        locations: [{ path: join(tree(), "a.txt"), line: 3 }, { path: "/etc/hosts" }],
        rawInput: { path: "a.txt" },
      }),
      update({
        sessionUpdate: "tool_call_update",
        toolCallId: "a",
        status: "completed",
        content: [
          { type: "content", content: content("did it") },
          { type: "diff", path: join(tree(), "a.txt"), oldText: "one\n", newText: "two\n" },
          { type: "diff", path: join(tree(), "b.txt"), newText: "new\n" },
        ],
      }),
      update({ sessionUpdate: "usage_update", used: 10, size: 100, cost: { amount: 0.25, currency: "EUR" } }),
      update({ sessionUpdate: "notice", severity: "warning", title: "Slow", description: "very" }),
      update({ sessionUpdate: "compaction_update", compactionId: "c", status: "failed", error: "no room" }),
      update({ sessionUpdate: "session_info_update", title: "Fix the build" }),
      update({ sessionUpdate: "user_message_chunk", content: content("echo") }),
      update({ sessionUpdate: "of_the_future", words: "x" }),
      "end max_tokens",
    );
    const blocks = blocksOf(agent).map(({ block }) => block);
    expect(blocks).toMatchObject([
      { case: "thought", value: { content: "Hm." } },
      {
        case: "plan",
        value: {
          entries: [
            { content: "read", state: 3, priority: 3 },
            { content: "write", state: 2, priority: 1 },
          ],
        },
      },
      {
        case: "toolCall",
        value: {
          id: "a",
          title: "Edit a",
          kind: 2,
          state: 1,
          locations: [
            { path: "a.txt", line: 3 },
            { path: "/etc/hosts", line: 0 },
          ],
          input: '{"path":"a.txt"}',
        },
      },
      {
        case: "toolCall",
        value: {
          id: "a",
          title: "",
          state: 4,
          result: "did it",
          diffs: [
            { path: "a.txt", kind: 2, diff: expect.stringContaining("-one\n+two\n") },
            { path: "b.txt", kind: 1, diff: expect.stringContaining("+new\n") },
          ],
        },
      },
      {
        case: "usage",
        value: { contextUsed: 10n, contextSize: 100n, cost: { amount: 0.25, currency: "EUR" } },
      },
      { case: "error", value: { message: "Slow: very" } },
      { case: "error", value: { message: "the conversation was not compacted: no room" } },
      { case: "error", value: { message: expect.stringContaining("the most tokens") } },
    ]);
    expect(agent.reports.some(({ currentActivity }) => currentActivity === "Fix the build")).toBe(true);
    expect(agent.reports.some(({ usage }) => usage?.contextWindowLength === 10n)).toBe(true);
  });

  test("is cancelled by what is steered, which is the next turn", async () => {
    const agent = await scripted();
    await agent.until(() => countWaits(agent) === 1);
    agent.say("one", "slow");
    await agent.until(() => agent.output().includes("text: working\n"));
    agent.say("two", "echo steered", { steer: true });
    await agent.until(() => countWaits(agent) === 2);
    expect(agent.output()).toEqual(["text: working\n", "text: cancelled\n", "text: steered\n"]);
    expect(agent.seenInputIds()).toEqual(["one", "two"]);
    expect(blocksOf(agent).map(({ inputId }) => inputId)).toEqual(["one", "one", "two"]);
  });

  test("masks secrets, also those that come in pieces", async () => {
    const agent = await scripted();
    const token = agent.assignment.work.environmentToken;
    expect(await ask(agent, `echo <${token}>`)).toEqual(["text: <***>\n"]);
    const shown = await ask(
      agent,
      update({ sessionUpdate: "tool_call", toolCallId: "a", title: token, rawInput: { token } }),
    );
    expect(JSON.stringify(shown)).not.toContain(token);
  });

  test("goes on after a turn that failed, or that the agent refused", async () => {
    const agent = await scripted();
    const [failed = ""] = await ask(agent, "throw something");
    expect(failed).toMatch(/^error: the turn failed: /);
    expect(await ask(agent, "end refusal")).toEqual(["error: the agent refuses to go on"]);
    expect(await ask(agent, "echo still here")).toEqual(["text: still here\n"]);
  });

  test("shows images to agents that take them, and their paths to others", async () => {
    const data = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
    const inputs = [
      { input: { case: "image" as const, value: { data, mimeType: "image/png" } } },
      { input: { case: "text" as const, value: { content: "show\nremember" } } },
    ];
    for (const images of [true, false]) {
      const agent = await scripted({ images });
      await agent.until(() => countWaits(agent) === 1);
      agent.send({ input: { id: "one", input: { case: "userInput", value: { inputs } } } });
      await agent.until(() => countWaits(agent) === 2);
      const text = agent.output().join("");
      if (images) expect(text).toContain('image ["image/png",8]');
      else expect(text).toMatch(/Image: \/.*\.png/);
    }
  });
});

describe("modes and settings", () => {
  const work = (status: object, spec: object) => ({
    work: { agentExecution: { id: RUN, status: { phase: Phase.RUNNING, ...status }, spec } },
  });

  test("are chosen where the agent has them", async () => {
    const settings = { model: 2, reasoningEffort: 4, serviceTier: 1 };
    const agent = await scripted(
      { modes: ["code", "architect"], config: true },
      work({ mode: 2 }, { extAgentSettings: settings }),
    );
    const [shown = ""] = await ask(agent, "show");
    for (const chosen of [
      'mode "architect"',
      'config ["llm","two"]',
      'config ["think","xhigh"]',
      'config ["fast",true]',
    ])
      expect(shown).toContain(chosen);
    agent.say("turn", "show", { turnOptions: { modes: [1] }, extAgentSettings: { model: 3 } });
    await agent.until(() => countWaits(agent) === 3);
    const switched = agent.output().join("");
    expect(switched).toContain('mode "code"');
    expect(switched).toContain('config ["llm","three"]');
  });

  test("that the agent does not have are reported, and the agent's own mode is reported", async () => {
    const agent = await scripted({ modes: ["ask", "plan"] });
    await agent.until(() => countWaits(agent) === 1);
    agent.say("one", update({ sessionUpdate: "current_mode_update", currentModeId: "plan" }), {
      turnOptions: { modes: [3] },
      extAgentSettings: { model: 1 },
    });
    await agent.until(() => countWaits(agent) === 2);
    expect(agent.output()).toEqual(["error: the agent has no mode ralph: it has ask, plan"]);
    expect(agent.reports.some(({ mode }) => mode === 2)).toBe(true);
  });
});

describe("servers of the Model Context Protocol", () => {
  const mcpServers = [
    { name: "files", command: ["mcp-files", "--root"], values: { KEY: "<${secret:FILES_KEY}>" } },
    { name: "docs", url: "https://docs.example.org/mcp", values: { "X-Key": "${secret:DOCS_KEY}" } },
    { name: "web", url: "https://web.example.org/mcp" },
  ];
  const work = { mcpServers, variables: { FILES_KEY: "key of files" } };
  const shown = async (agent: RunningAgent) =>
    (await ask(agent, "show-hex")).map((line) =>
      Buffer.from(line.replace("text: ", ""), "hex")
        .toString()
        .split("\n")
        .find((each) => each.startsWith("new ")),
    );

  test("are given to the agent, with the secrets that they name, and people learn of those that cannot be", async () => {
    const agent = await scripted({}, { work });
    await agent.until(() => countWaits(agent) === 1);
    expect(agent.output()).toEqual([
      "error: the agent does not receive the MCP server docs: the run has no secret DOCS_KEY as an environment variable",
    ]);
    const files = {
      name: "files",
      command: "mcp-files",
      args: ["--root"],
      env: [{ name: "KEY", value: "<key of files>" }],
    };
    const web = { name: "web", url: "https://web.example.org/mcp", headers: [], type: "http" };
    expect(await shown(agent)).toEqual([`new ${JSON.stringify([files, web])}`]);
    expect((await ask(agent, "show")).join("")).toContain('"value":"<***>"');
    const complaining = await scripted({ complains: true }, { work });
    const failure = String(await complaining.ended);
    expect(failure).toContain("the agent answered an error: no use for");
    expect(failure).not.toContain("key of files");
  });

  test("with a URL are for agents that take them", async () => {
    const agent = await scripted({ commandsOnly: true }, { work: { mcpServers: mcpServers.slice(2) } });
    expect(await shown(agent)).toEqual(["new []"]);
    expect(agent.output()[0]).toContain("web: it does not take servers with a URL");
  });

  test("are not given to the agent where the policy forbids them", async () => {
    const agent = await scripted({}, { work, policies: { agentPolicy: { mcpDisabled: true } } });
    expect(await shown(agent)).toEqual(["new []"]);
    expect(agent.output()).toHaveLength(1);
  });

  test("are given again to an agent that goes on with its session", async () => {
    const options = { resume: true };
    const first = await scripted(options, { work: { mcpServers: mcpServers.slice(2) } });
    await ask(first, "echo the first words");
    first.assignment.lease.interrupt("lost");
    await first.ended;
    const second = await scripted(options, {
      work: { mcpServers: mcpServers.slice(2) },
      keepWorkspace: true,
    });
    expect((await ask(second, "show")).join("")).toContain('resume [{"name":"web","url"');
  });
});

describe("files", () => {
  test("are read and written in the workspace", async () => {
    const agent = await scripted();
    const path = join(tree(), "folder/a.txt");
    const shown = await ask(
      agent,
      call("fs/write_text_file", { path, content: "one\ntwo\nthree\n" }),
      call("fs/read_text_file", { path, line: 2, limit: 1 }),
      call("fs/read_text_file", { path: join(tree(), "none.txt") }),
    );
    expect(readFileSync(path, "utf8")).toBe("one\ntwo\nthree\n");
    expect(shown[0]).toBe("fileChange: folder/a.txt");
    const answers = shown.slice(1).join("");
    expect(answers).toContain('{"content":"two\\n"}');
    expect(answers).toContain("refused: Resource not found");
  });

  test("outside of it are refused, however the path leads there", async () => {
    const agent = await scripted();
    const outside = temporaryFolder();
    writeFileSync(join(outside, "secret.txt"), "secret");
    symlinkSync(outside, join(tree(), "link"));
    symlinkSync(join(outside, "new.txt"), join(tree(), "dangling.txt"));
    mkdirSync(join(tree(), "folder"));
    const paths = [
      join(outside, "secret.txt"),
      join(tree(), "link/secret.txt"),
      join(tree(), "link/new.txt"),
      join(tree(), "dangling.txt"),
      `${tree()}/absent/../link/secret.txt`,
      `${tree()}/absent/../link/new.txt`,
      `${tree()}/folder/../../../../../${outside}/secret.txt`,
      "relative.txt",
      tree(),
    ];
    for (const path of paths) {
      const shown = await ask(
        agent,
        call("fs/read_text_file", { path }),
        call("fs/write_text_file", { path, content: "x" }),
      );
      expect([path, shown.join("").match(/refused: /g)?.length]).toEqual([path, 2]);
    }
    expect(readFileSync(join(outside, "secret.txt"), "utf8")).toBe("secret");
    expect(existsSync(join(outside, "new.txt"))).toBe(false);
  });
});

describe("terminals", () => {
  test("run commands in the workspace, and show their output with the tool call", async () => {
    const agent = await scripted();
    const shown = await ask(
      agent,
      `run ${JSON.stringify({ command: "sh", args: ["-c", 'echo "$WORD $PWD"; exit 3'], env: [{ name: "WORD", value: "hi" }] })}`,
      `run ${JSON.stringify({ command: "echo one two | tr a-z A-Z" })}`,
      `run ${JSON.stringify({ command: "no-such-program" })}`,
    );
    expect(shown).toEqual(expect.arrayContaining(["text: 3 null\n", "text: 0 null\n", "text: 127 null\n"]));
    const results = blocksOf(agent).flatMap(({ block }) =>
      block.case === "toolCall" && block.value.state === 4 ? block.value.result : [],
    );
    expect(results[0]).toBe(`hi ${tree()}\n`);
    expect(results[1]).toBe("ONE TWO\n");
    expect(results[2]).toContain("could not be started");
  });

  test("are cut at the limit, killed, and gone when they are released", async () => {
    const agent = await scripted();
    const shown = await ask(
      agent,
      call("terminal/create", {
        command: "sh",
        args: ["-c", "printf 0123456789; sleep 100"],
        outputByteLimit: 4,
      }),
      call("terminal/kill", { terminalId: "terminal-1" }),
      call("terminal/wait_for_exit", { terminalId: "terminal-1" }),
      call("terminal/output", { terminalId: "terminal-1" }),
      call("terminal/release", { terminalId: "terminal-1" }),
      call("terminal/output", { terminalId: "terminal-1" }),
      call("terminal/create", { command: "pwd", cwd: "/etc" }),
    );
    const text = shown.join("");
    expect(text).toContain('"signal":"SIGTERM"');
    expect(text).toMatch(/refused: Resource not found.*\n.*refused: .*leads out of the workspace/);
  });

  test("end with the run", async () => {
    const agent = await scripted();
    await ask(agent, call("terminal/create", { command: "sh", args: ["-c", "echo $$ > pid; sleep 100"] }));
    const file = join(tree(), "pid");
    await until(
      () => existsSync(file) && readFileSync(file, "utf8"),
      (text) => text !== false && text.endsWith("\n"),
    );
    agent.assignment.lease.interrupt("stop");
    await agent.ended;
    expect(existsSync(`/proc/${readFileSync(file, "utf8").trim()}`)).toBe(false);
  });
});

describe("a lost runner", () => {
  const lose = async (agent: RunningAgent) => {
    agent.assignment.lease.interrupt("lost");
    await agent.ended;
  };
  const again = (options: object) => scripted(options, { keepWorkspace: true });

  test.each(["resume", "load"])("is followed by one that goes on with the session by %s", async (way) => {
    const options = { [way]: true };
    const first = await scripted(options);
    await ask(first, "echo the first words");
    await lose(first);
    const second = await again(options);
    expect(await ask(second, "remember")).toEqual(["text: echo the first words"]);
    expect((await ask(second, "show")).join("")).toContain(`${way} []`);
  });

  test("is followed by a new session where the agent cannot go on, and people learn of it", async () => {
    const first = await scripted();
    await ask(first, "echo the first words");
    await lose(first);
    const second = await again({});
    await second.until(() => countWaits(second) === 1);
    expect(second.output()).toEqual([
      expect.stringMatching(/^error: the agent could not go on with its session/),
    ]);
    expect(await ask(second, "remember")).toEqual(["text: remember"]);
    // Calls of the new session have names of their own.
    const toolCall = { sessionUpdate: "tool_call", toolCallId: "a", title: "Do it" };
    expect(await ask(second, update(toolCall))).toEqual(["toolCall: 2:a Do it UNSPECIFIED"]);
  });
});

describe("a run fails", () => {
  const failureOf = async (agent: RunningAgent) => {
    const error = await agent.ended;
    expect(error).toBeInstanceOf(WorkFailure);
    return error as WorkFailure;
  };

  test("when the agent demands authentication, and says what to do", async () => {
    const { reason, message } = await failureOf(await scripted({ auth: true }));
    expect(reason).toBe("agent_unauthenticated");
    expect(message).toMatch(/demands authentication.*A key \(of the model\)/);
  });

  test("when the agent speaks another version of the protocol", async () => {
    const { message } = await failureOf(await scripted({ version: 2 }));
    expect(message).toContain("version 2");
  });

  test("when its program ends in the middle of a turn", async () => {
    const agent = await scripted();
    await agent.until(() => countWaits(agent) === 1);
    agent.say("one", "echo half\nexit 3");
    const { message } = await failureOf(agent);
    expect(message).toMatch(/ended with exit status 3/);
    expect(agent.output()).toEqual(["text: half\n"]);
  });

  test("when its program ends before it has a session", async () => {
    const agent = await start({ command: ["sh", "-c", "echo no key >&2; exit 1"], form: AgentForm.ACP });
    expect((await failureOf(agent)).message).toMatch(/ended with exit status 1: no key/);
  });
});

describe("an agent that speaks badly", () => {
  /** Answers what it must, and then writes what `turn` says for each prompt before it ends the turn. */
  const bad = (turn: string) => {
    const code = `
      const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
      const print = (text) => process.stdout.write(text);
      const update = (change) => say({ method: "session/update", params: { sessionId: "s", update: change } });
      require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
        const { id, method } = JSON.parse(line);
        if (method === "initialize") say({ id, result: { protocolVersion: 1 } });
        if (method === "session/new") say({ id, result: { sessionId: "s" } });
        if (method !== "session/prompt") return;
        ${turn}
        say({ id, result: { stopReason: "end_turn" } });
      });`;
    return start({ command: [process.execPath, "-e", code], form: AgentForm.ACP });
  };

  test("is heard on after unknown methods, half lines and what is no message", async () => {
    const agent = await bad(`
      say({ id: 90, method: "no/such", params: {} }); say({ method: "no/such_news" }); say({ id: 91, result: {} });
      update({ sessionUpdate: "plan", entries: 7 }); say({ method: "session/update", params: 7 });
      print("words\\n[1]\\n7\\n{}\\n");
      const whole = JSON.stringify({ jsonrpc: "2.0", method: "session/update", params: { sessionId: "s",
        update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "whole" } } } }) + "\\n";
      print(whole.slice(0, 20)); print(whole.slice(20));`);
    const shown = await ask(agent, "x");
    expect(shown.filter((line) => line.startsWith("error: the agent's output breaks its form"))).toHaveLength(
      4,
    );
    expect(shown.at(-1)).toBe("text: whole");
    expect((await ask(agent, "x")).at(-1)).toBe("text: whole");
  });

  test("may send updates of 10 MB, which are cut", async () => {
    const agent = await bad(`
      update({ sessionUpdate: "tool_call", toolCallId: "a", title: "Read", rawOutput: "x".repeat(10_000_000) });
      update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: "y".repeat(10_000_000) } });`);
    const shown = await ask(agent, "x");
    expect(shown[0]).toBe("toolCall: a Read UNSPECIFIED");
    const words = shown.slice(1).map((line) => line.replace("text: ", "").length);
    expect(words.reduce((sum, length) => sum + length)).toBe(10_000_000);
    expect(Math.max(...words)).toBeLessThanOrEqual(65_536);
  });

  test("fails its run when it never opens a session, or never ends a turn that is cancelled", async () => {
    const command = [process.execPath, "-e", "process.stdin.resume()"];
    const silent = await start({ command, form: AgentForm.ACP, acpLimits: { startMs: 500 } });
    expect(String(await silent.ended)).toContain("did not open a session within 0.5 s");
    const stuck = await start({
      command: [
        process.execPath,
        "-e",
        `require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
          const { id, method } = JSON.parse(line);
          const result = method === "initialize" ? { protocolVersion: 1 } : { sessionId: "s" };
          if (method !== "session/prompt" && id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
        })`,
      ],
      form: AgentForm.ACP,
      acpLimits: { cancelMs: 500 },
    });
    await stuck.until(() => countWaits(stuck) === 1);
    stuck.say("one", "x");
    await stuck.until(() => stuck.seenInputIds().length === 1);
    stuck.say("two", "y", { steer: true });
    expect(String(await stuck.ended)).toContain("did not end its turn within 0.5 s");
  });
});

test("a run that is stopped cancels its turn, and ends", async () => {
  const agent = await scripted();
  await agent.until(() => countWaits(agent) === 1);
  agent.say("one", "slow");
  await agent.until(() => agent.output().includes("text: working\n"));
  agent.assignment.lease.interrupt("stop");
  await agent.ended;
  expect(agent.output()).toEqual(["text: working\n", "text: cancelled\n"]);
});

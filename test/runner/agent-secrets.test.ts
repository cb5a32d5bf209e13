import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { AgentForm } from "#gen/runner/v1/work_pb.js";
import type { WorkFailure } from "../../src/runner/protocol/work-failure.ts";
import type { RunningAgent, RunningAgentOptions } from "../harness/fake-agent-service.ts";
import { ROOT } from "../harness/program.ts";
import { countWaits, runningAgents } from "../harness/running-agents.ts";
import { temporaryFolder } from "../harness/server.ts";

const VALUE = "Rumpelstiltskin-7b1e";
/** Longer than what is reported of a program's errors, and of no repeated part. */
const LONG = Array.from({ length: 1_500 }, (_, at) => `<${at}>`).join("");

const { start, workspaces } = runningAgents();
const secrets: RunningAgentOptions["secrets"] = [
  { name: "TOKEN", value: VALUE, mount: { case: "environmentVariable", value: true } },
  { name: "LONG", value: LONG, mount: { case: "environmentVariable", value: true } },
  { name: "KEY", value: VALUE, mount: { case: "filePath", value: "/run/key" } },
];

/** An agent of JSON lines that runs JavaScript for its first input; `say` writes a line. */
const inline = (code: string) =>
  start({
    secrets,
    command: [
      process.execPath,
      "-e",
      `const say = (line) => process.stdout.write(JSON.stringify(line) + "\\n");
       const { TOKEN, LONG } = process.env;
       process.stdin.on("data", (bytes) => {
         for (const line of String(bytes).split("\\n").filter(Boolean)) {
           const { type, id } = JSON.parse(line);
           if (type !== "user_input") continue;
           say({ type: "seen", id });
           ${code}
           say({ type: "turn_done" });
         }
       });`,
    ],
  });

async function turnOf(agent: RunningAgent): Promise<void> {
  await agent.until(() => countWaits(agent) === 1);
  agent.say("one", "go");
  await agent.until(() => countWaits(agent) === 2);
}

const blocksOf = (agent: RunningAgent) =>
  agent.reports.flatMap(({ blocks }) => blocks).map(({ block }) => block);
const wordsOf = (agent: RunningAgent) =>
  blocksOf(agent)
    .map((block) =>
      block.case === "text" || block.case === "thought" ? block.value.content : `(${block.case})`,
    )
    .join("");
const reported = (agent: RunningAgent) =>
  JSON.stringify(agent.reports, (_, value) => (typeof value === "bigint" ? String(value) : value));

describe("of an agent of JSON lines", () => {
  test("a secret is masked in words that come in pieces, and the words stay in their order", async () => {
    const agent = await inline(`
      for (const piece of ["a ", ...TOKEN, " b R"]) say({ type: "text", content: piece });
      say({ type: "thought", content: TOKEN.slice(0, 9) });
      say({ type: "thought", content: TOKEN.slice(9) });
      say({ type: "plan", entries: [] });
      say({ type: "text", content: "Rump" });`);
    await turnOf(agent);
    expect(wordsOf(agent)).toBe("a *** b R***(plan)Rump");
    expect(blocksOf(agent).filter((block) => block.case === "thought")).toHaveLength(1);
  });

  test("half a secret is nowhere where a text is cut at its limit", async () => {
    const agent = await inline(`
      const cut = (limit) => "x".repeat(limit - 7) + TOKEN;
      say({ type: "plan", entries: [{ content: cut(1024) }] });
      say({ type: "tool_call", id: "a", title: cut(1024), input: cut(65536), result: cut(65536),
        diffs: [{ path: "a", kind: "modified", diff: cut(32768) }] });
      say({ type: "error", message: cut(4096) });
      say({ type: "activity", text: cut(256) });`);
    await turnOf(agent);
    expect(reported(agent)).not.toContain(VALUE.slice(0, 4));
    expect(blocksOf(agent).map((block) => block.case)).toEqual(["plan", "toolCall", "error"]);
  });

  test("the parser's error repeats nothing of a line that is no JSON", async () => {
    const agent = await inline(
      `process.stdout.write("{" + TOKEN + "\\n"); process.stdout.write(TOKEN + "\\n");`,
    );
    await turnOf(agent);
    expect(agent.output()).toEqual([
      "error: the agent's output breaks its form: a line was not understood, since it is no JSON: {***",
      "error: the agent's output breaks its form: a line was not understood, since it is no JSON: ***",
    ]);
  });

  test("a secret is masked in its last errors, also one that is longer than what is reported of them", async () => {
    const agent = await inline(`process.stderr.write(LONG + " " + TOKEN + " end", () => process.exit(1));`);
    await agent.until(() => countWaits(agent) === 1);
    agent.say("one", "go");
    const failure = (await agent.ended) as WorkFailure;
    expect(failure.message).toBe("the agent's program ended with exit status 1: *** *** end");
  });

  test("the files are there while it runs, and gone when it has ended", async () => {
    const agent = await inline(`
      const { readFileSync } = require("node:fs");
      const key = readFileSync(process.env.CHARTROOM_SECRETS + "/run/key", "utf8");
      say({ type: "text", content: key === TOKEN ? "the same" : "another" });`);
    await turnOf(agent);
    expect(agent.output()).toEqual(["text: the same"]);
    const keys = () =>
      readdirSync(workspaces(), { recursive: true }).filter((name) => /run.key$/.test(String(name)));
    expect(keys()).toHaveLength(1);
    agent.assignment.lease.interrupt("stop");
    await agent.ended;
    expect(keys()).toEqual([]);
  });
});

describe("of an agent of the Agent Client Protocol", () => {
  const program = join(ROOT, "test/harness/acp-agent.ts");
  const scripted = () =>
    start({
      secrets,
      command: [process.execPath, "--disable-warning=ExperimentalWarning", program, "{}"],
      form: AgentForm.ACP,
    });
  const asked = async (agent: RunningAgent, ...lines: string[]) => {
    await agent.until(() => countWaits(agent) === 1);
    agent.say("one", lines.join("\n"));
    await agent.until(() => countWaits(agent) === 2);
  };
  const update = (change: object) => `update ${JSON.stringify(change)}`;

  test("half a secret is nowhere where a text is cut at its limit", async () => {
    const cut = (limit: number) => "x".repeat(limit - 7) + VALUE;
    const agent = await scripted();
    await asked(
      agent,
      update({
        sessionUpdate: "plan",
        entries: [{ content: cut(1_024), status: "pending", priority: "low" }],
      }),
      update({
        sessionUpdate: "tool_call",
        toolCallId: "a",
        title: cut(1_024),
        rawInput: cut(65_536),
        rawOutput: { result: cut(65_525) },
        locations: [{ path: cut(1_024) }],
      }),
      update({
        sessionUpdate: "tool_call_update",
        toolCallId: "b",
        title: "edits",
        content: [{ type: "diff", path: "a.txt", oldText: "", newText: `${"x".repeat(100)}\n${VALUE}\n` }],
      }),
    );
    expect(reported(agent)).not.toContain(VALUE.slice(0, 4));
    expect(reported(agent)).toContain("+***");
  });

  test("what is kept of a terminal's output begins with no half of a secret", async () => {
    const script = join(temporaryFolder(), "print.sh");
    writeFileSync(script, 'printf %s "$TOKEN"; head -c 190 /dev/zero | tr "\\0" x');
    const agent = await scripted();
    await asked(agent, `run ${JSON.stringify({ command: "sh", args: [script], outputByteLimit: 200 })}`);
    expect(reported(agent)).toContain("xxxx");
    expect(reported(agent)).not.toContain(VALUE.slice(-4));
  });
});

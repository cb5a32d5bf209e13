import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { AgentForm } from "#gen/runner/v1/work_pb.js";
import { ApprovalState as Approval } from "#gen/service/v1/approval_pb.js";
import { WorkFailure } from "../../src/runner/protocol/work-failure.ts";
import type { RunningAgentOptions } from "../harness/fake-agent-service.ts";
import { countWaits } from "../harness/running-agents.ts";
import { scriptedAcpAgents } from "../harness/scripted-acp-agent.ts";

const { start, tree } = scriptedAcpAgents();

/** Starts an agent that does as `turn` says at its first prompt, and counts the answers to its requests. */
async function asking(turn: string, more: Partial<RunningAgentOptions> = {}) {
  const code = `
    const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
    let id = 1000, answers = 0, total = Infinity, prompt;
    const ask = (method, params) => say({ id: id++, method, params: { sessionId: "s", ...params } });
    const end = () => {
      say({ method: "session/update", params: { sessionId: "s",
        update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: String(answers) } } } });
      say({ id: prompt, result: { stopReason: "end_turn" } });
    };
    require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
      const message = JSON.parse(line);
      if (message.method === "initialize") say({ id: message.id, result: { protocolVersion: 1 } });
      if (message.method === "session/new") say({ id: message.id, result: { sessionId: "s" } });
      if (message.method === undefined && ++answers === total) end();
      if (message.method !== "session/prompt") return;
      prompt = message.id;
      ${turn}
    });`;
  const agent = await start({ command: [process.execPath, "-e", code], form: AgentForm.ACP, ...more });
  await agent.until(() => countWaits(agent) === 1);
  writeFileSync(join(tree(), "large.txt"), "x".repeat(1_000_000));
  writeFileSync(join(tree(), "small.txt"), "x".repeat(1_000));
  agent.say("one", "ask");
  return agent;
}

/** Requests for a large file by an agent that reads no answers before it has written them all. */
const READS = `process.stdin.pause();
  for (let at = 0; at < 2000; at++) ask("fs/read_text_file", { path: process.cwd() + "/large.txt" });`;

test("an agent that asks on and reads no answers fails its run, and is not read any further", async () => {
  let asked = 0;
  const agent = await asking(READS, {
    acpLimits: { unreadMs: 500 },
    onApproval: () => {
      asked++;
      return { case: "policy", value: { allowed: true } };
    },
  });
  const failure = await agent.ended;
  expect(failure).toBeInstanceOf(WorkFailure);
  expect(String(failure)).toMatch(
    /the agent reads no answers: 256 of its requests, \d+ bytes with their answers/,
  );
  // Some more were read from what the program had written, after it was ended.
  expect(asked).toBeLessThan(600);
  // The files that were read in advance, not all that were asked for.
  expect(Number(/(\d+) bytes/.exec(String(failure))?.[1])).toBeLessThan(20_000_000);
});

test("an agent that reads its answers may ask for more at once than are open at a time", async () => {
  const agent = await asking(`total = 700; for (let at = 0; at < total; at++)
    ask("fs/read_text_file", { path: process.cwd() + "/small.txt" });`);
  await agent.until(() => countWaits(agent) === 2);
  expect(agent.output()).toEqual(["text: 700"]);
});

test("a program that ends while people are asked for all that it may ask ends its run", async () => {
  const agent = await asking(
    `for (let at = 0; at < 300; at++)
      ask("session/request_permission", { toolCall: { toolCallId: "call " + at }, options: [] });
    process.exit(3);`,
    {
      onApproval: ({ toolCallId }) => ({
        case: "approval",
        value: { approvalId: toolCallId, state: Approval.PENDING },
      }),
    },
  );
  expect(String(await agent.ended)).toContain("ended with exit status 3");
});

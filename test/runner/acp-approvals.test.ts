import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import type { RequestApprovalRequest } from "#gen/runner/v1/agent_work_service_pb.js";
import { ApprovalState as Approval } from "#gen/service/v1/approval_pb.js";
import { approvalContent } from "../../src/domain/approval/approval.ts";
import type { RunningAgent } from "../harness/fake-agent-service.ts";
import { countWaits } from "../harness/running-agents.ts";
import { blocksOf, call, scriptedAcpAgents, update } from "../harness/scripted-acp-agent.ts";

const { scripted, tree, ask } = scriptedAcpAgents();

type Asked = RequestApprovalRequest;
const inputOf = ({ request }: Asked) => (request.case === "toolCall" ? JSON.parse(request.value.input) : {});
const digestOfAsked = ({ request }: Asked) => {
  if (request.case === undefined) throw new Error("nothing is asked for");
  return createHash("sha256").update(approvalContent(request).requestJson).digest("hex");
};

describe("permissions", () => {
  const options = [
    { optionId: "always", name: "Always", kind: "allow_always" },
    { optionId: "yes", name: "Yes", kind: "allow_once" },
    { optionId: "no", name: "No", kind: "reject_once" },
  ];
  const asking = (toolCall: object, some: readonly object[] = options) =>
    call("session/request_permission", { toolCall, options: some });

  test.each([
    [true, "yes"],
    [false, "no"],
  ])("that the policy gives (%s) have the option that holds once", async (allowed, optionId) => {
    const requests: Asked[] = [];
    const agent = await scripted(
      {},
      {
        onApproval: (request) => {
          requests.push(request);
          return { case: "policy", value: { allowed, reason: "so it is" } };
        },
      },
    );
    const token = agent.assignment.work.environmentToken;
    const shown = await ask(
      agent,
      update({
        sessionUpdate: "tool_call",
        toolCallId: "a",
        title: `Use ${token}`,
        name: "shell",
        kind: "execute",
        rawInput: { command: "make" },
        locations: [{ path: join(tree(), "a.txt") }],
      }),
      asking({ toolCallId: "a" }),
    );
    expect(shown.at(-1)).toBe(`text: {"outcome":{"outcome":"selected","optionId":"${optionId}"}}\n`);
    const refusals = shown.filter((line) => line === "error: the tool call Use *** was denied: so it is");
    expect(refusals).toHaveLength(allowed ? 0 : 1);
    expect(requests).toMatchObject([
      {
        toolCallId: "a",
        request: {
          case: "toolCall",
          value: {
            title: "Use ***",
            kind: 6,
            tool: "shell",
            input: '{"command":"make"}',
            locations: ["a.txt"],
          },
        },
        options: [
          { id: "always", name: "Always", kind: 2 },
          { id: "yes", kind: 1 },
          { id: "no", kind: 3 },
        ],
      },
    ]);
  });

  test.each([
    ["an option that people chose", { state: Approval.APPROVED, optionId: "always" }, "always"],
    ["one that the agent does not offer", { state: Approval.APPROVED, optionId: "gone" }, "yes"],
    ["one that does not go with the answer", { state: Approval.DENIED, optionId: "always" }, "no"],
    ["nobody's decision in time", { state: Approval.EXPIRED }, "no"],
  ])("have as answer %s", async (_, outcome, optionId) => {
    const agent = await scripted(
      {},
      { onApproval: () => ({ case: "approval", value: { approvalId: "asked", ...outcome } }) },
    );
    expect((await ask(agent, asking({ toolCallId: "a", title: "Do it" }))).at(-1)).toBe(
      `text: {"outcome":{"outcome":"selected","optionId":"${optionId}"}}\n`,
    );
  });

  test("show what is too long by its start and a digest, and what hides as an escape", async () => {
    const requests: Asked[] = [];
    const agent = await scripted(
      {},
      {
        onApproval: (request) => {
          requests.push(request);
          return { case: "policy", value: { allowed: true } };
        },
      },
    );
    const text = "x".repeat(100_000);
    const toolCall = { toolCallId: "a", title: "Edit", kind: "edit", rawInput: text };
    const hidden = { ...toolCall, toolCallId: "b", rawInput: { hidden: "a\u202eb" } };
    expect((await ask(agent, asking(toolCall), asking(hidden))).at(-1)).toContain('"optionId":"yes"');
    expect(requests.pop()?.request.value).toMatchObject({ input: '{"hidden":"a\\u202eb"}' });
    const sha256 = createHash("sha256").update(text).digest("hex");
    expect(requests.map(inputOf)).toEqual([{ bytes: 100_000, sha256, start: "x".repeat(32_768) }]);
  });

  test("have no answer where the agent offers none that fits, and none without an id", async () => {
    const agent = await scripted({}, { onApproval: () => ({ case: "policy", value: { allowed: false } }) });
    const shown = await ask(
      agent,
      asking({ toolCallId: "a", title: "Do it" }, options.slice(0, 2)),
      asking({ toolCallId: "" }),
    );
    const answers = shown.filter((line) => line.startsWith("text: ")).join("");
    expect(answers.match(/\{"outcome":\{"outcome":"cancelled"\}\}/g)).toHaveLength(2);
  });
});

describe("what the runner carries out for an agent", () => {
  const denied = (tool: string) => ({
    onApproval: ({ request }: Asked) => ({
      case: "policy" as const,
      value: { allowed: request.case !== "toolCall" || request.value.tool !== tool, reason: "not here" },
    }),
  });

  test.each([
    ["fs/write_text_file", { content: "x" }],
    ["fs/read_text_file", {}],
    ["terminal/create", { command: "touch new.txt" }],
  ])("is refused where the policy denies %s", async (tool, params) => {
    const agent = await scripted({}, denied(tool));
    await agent.until(() => countWaits(agent) === 1);
    writeFileSync(join(tree(), "old.txt"), "old");
    const shown = await ask(agent, call(tool, { path: join(tree(), "old.txt"), ...params }));
    expect(shown.at(-1)).toMatch(/^text: "refused: Invalid request: the tool call .* was denied: not here"/);
    expect(readFileSync(join(tree(), "old.txt"), "utf8")).toBe("old");
    expect(existsSync(join(tree(), "new.txt"))).toBe(false);
  });

  test("is shown as it is, whatever characters it has", async () => {
    const requests: Asked[] = [];
    const agent = await scripted(
      {},
      {
        onApproval: (request) => {
          requests.push(request);
          return { case: "policy", value: { allowed: true } };
        },
      },
    );
    await agent.until(() => countWaits(agent) === 1);
    mkdirSync(join(tree(), "folder"));
    symlinkSync(join(tree(), "folder"), join(tree(), "link"));
    const token = agent.assignment.work.environmentToken;
    const hidden = "a\u202eb \u{e0041}";
    const path = join(tree(), "link/a.txt");
    const long = `${"x".repeat(32_760)}${token}${"x".repeat(10_000)}`;
    await ask(
      agent,
      call("fs/write_text_file", { path, content: `${hidden} ${token}` }),
      call("fs/write_text_file", { path, content: long }),
      call("terminal/create", { command: "echo", args: [token], env: [{ name: "A", value: "1" }] }),
    );
    expect(readFileSync(join(tree(), "folder/a.txt"), "utf8")).toBe(long);
    expect(requests.map(({ request }) => request.value)).toMatchObject([
      {
        title: "Write folder/a.txt",
        kind: 2,
        tool: "fs/write_text_file",
        input: '{"content":"a\\u202eb \\udb40\\udc41 ***"}',
        locations: ["folder/a.txt"],
      },
      { title: "Write folder/a.txt" },
      { title: "Run echo ***", kind: 6, tool: "terminal/create" },
    ]);
    const [, second, third] = requests.map(inputOf);
    const sha256 = createHash("sha256").update(long).digest("hex");
    expect(second).toMatchObject({ bytes: long.length, sha256, start: `${"x".repeat(32_760)}***xxxxx` });
    expect(third).toMatchObject({ command: "echo", args: ["***"], env: [{ name: "A", value: "1" }] });
    expect(new Set(requests.map(({ toolCallId }) => toolCallId)).size).toBe(3);
  });

  test("is compared with what was approved at that moment", async () => {
    const requests: Asked[] = [];
    const agent = await scripted(
      {},
      {
        onApproval: (request) => {
          requests.push(request);
          return { case: "approval", value: { approvalId: request.toolCallId, state: Approval.PENDING } };
        },
      },
    );
    await agent.until(() => countWaits(agent) === 1);
    for (const name of ["one", "two"]) mkdirSync(join(tree(), name));
    symlinkSync(join(tree(), "one"), join(tree(), "link"));
    const path = join(tree(), "link/a.txt");
    const waiting = () => agent.output().filter((line) => line.endsWith("WAITING_FOR_APPROVAL")).length;
    const approve = (asked: Asked) => {
      const value = { approvalId: asked.toolCallId, state: Approval.APPROVED, digest: digestOfAsked(asked) };
      agent.send({ input: { id: `of ${asked.toolCallId}`, input: { case: "approval", value } } });
    };
    agent.say(
      "one",
      [1, 2].map((word) => call("fs/write_text_file", { path, content: `${word}` })).join("\n"),
    );
    await agent.until(() => waiting() === 1);
    rmSync(join(tree(), "link"));
    symlinkSync(join(tree(), "two"), join(tree(), "link"));
    approve(requests[0] as Asked);
    await agent.until(() => waiting() === 2);
    approve(requests[1] as Asked);
    await agent.until(() => countWaits(agent) === 2);
    const words = agent.output().join("");
    expect(words).toContain("it is not what was asked for any more");
    expect(existsSync(join(tree(), "one/a.txt"))).toBe(false);
    expect(readFileSync(join(tree(), "two/a.txt"), "utf8")).toBe("2");
    const states = agent.output().filter((line) => line.startsWith("toolCall: "));
    expect(states.map((line) => line.split(" ").at(-1))).toEqual([
      "WAITING_FOR_APPROVAL",
      "RUNNING",
      "FAILED",
      "WAITING_FOR_APPROVAL",
      "RUNNING",
      "DONE",
    ]);
  });

  test.each([
    [0, "DONE"],
    [3, "FAILED"],
  ])("is reported to its end, of a command with status %s as %s", async (status, state) => {
    const requests: Asked[] = [];
    const agent = await scripted(
      {},
      {
        onApproval: (request) => {
          requests.push(request);
          return { case: "approval", value: { approvalId: request.toolCallId, state: Approval.PENDING } };
        },
      },
    );
    await agent.until(() => countWaits(agent) === 1);
    agent.say("one", `run ${JSON.stringify({ command: "sh", args: ["-c", `exit ${status}`] })}`);
    const shown = () => agent.output().filter((line) => line.startsWith("toolCall: asked-"));
    await agent.until(() => shown().length === 1);
    const [asked] = requests as [Asked];
    const digest = digestOfAsked(asked);
    const value = { approvalId: asked.toolCallId, state: Approval.APPROVED, digest };
    agent.send({ input: { id: "decision", input: { case: "approval", value } } });
    await agent.until(() => countWaits(agent) === 2);
    expect(shown().map((line) => line.split(" ").at(-1))).toEqual(["WAITING_FOR_APPROVAL", "RUNNING", state]);
  });

  test("is reported to its end where people have decided it for an earlier process", async () => {
    const agent = await scripted(
      {},
      {
        onApproval: (asked) => ({
          case: "approval",
          value: { approvalId: asked.toolCallId, state: Approval.APPROVED, digest: digestOfAsked(asked) },
        }),
      },
    );
    await agent.until(() => countWaits(agent) === 1);
    const shown = await ask(
      agent,
      call("fs/write_text_file", { path: join(tree(), "a.txt"), content: "x" }),
      call("fs/read_text_file", { path: join(tree(), "none.txt") }),
    );
    const states = shown.filter((line) => line.startsWith("toolCall: asked-"));
    expect(states.map((line) => line.split(" ").slice(2).join(" ").trim())).toEqual([
      "Write a.txt RUNNING",
      "DONE",
      "Read none.txt RUNNING",
      "FAILED",
    ]);
  });

  test("is not asked for again where the agent has the permission for just this command, once", async () => {
    const tools: string[] = [];
    const agent = await scripted(
      {},
      {
        onApproval: ({ request }) => {
          const { kind = 0, tool = "" } = request.case === "toolCall" ? request.value : {};
          tools.push(`${kind} ${tool}`);
          return { case: "policy", value: { allowed: tool !== "terminal/create" } };
        },
      },
    );
    const options = [{ optionId: "yes", name: "Yes", kind: "allow_once" }];
    const toolCall = { toolCallId: "a", name: "shell", kind: "execute", rawInput: { command: "echo 1" } };
    const run = (params: object) => call("terminal/create", params);
    const shown = await ask(
      agent,
      call("session/request_permission", { toolCall, options }),
      run({ command: "echo 2" }),
      run({ command: "echo 1", env: [{ name: "PATH", value: "/tmp" }] }),
      run({ command: "bash", args: ["-c", "echo 1"] }),
      run({ command: "echo 1" }),
    );
    expect(tools).toEqual(["6 shell", ...Array(3).fill("6 terminal/create")]);
    expect(shown.join("").match(/"terminalId"/g)).toHaveLength(1);
  });

  test("is asked for again where its folder is another one than the permission was for", async () => {
    const agent = await scripted({}, denied("terminal/create"));
    await agent.until(() => countWaits(agent) === 1);
    for (const name of ["one", "two"]) mkdirSync(join(tree(), name));
    const link = join(tree(), "link");
    const leadTo = (name: string) => {
      rmSync(link, { force: true });
      symlinkSync(join(tree(), name), link);
    };
    const options = [{ optionId: "yes", name: "Yes", kind: "allow_once" }];
    const permission = (id: string, cwd: string) => {
      const rawInput = { command: "touch here", cwd };
      return call("session/request_permission", {
        toolCall: { toolCallId: id, kind: "execute", rawInput },
        options,
      });
    };
    const run = (cwd: string) => call("terminal/create", { command: "touch here", cwd });
    leadTo("one");
    await ask(agent, permission("a", link));
    expect((await ask(agent, permission("b", "link"), run(`${tree()}/two/../link`))).join("")).toContain(
      '"terminalId"',
    );
    const swap = `ln -sfn ${join(tree(), "two")} ${link}`;
    const shown = await ask(
      agent,
      permission("d", link),
      call("session/request_permission", {
        toolCall: { toolCallId: "e", kind: "execute", rawInput: { command: swap } },
        options,
      }),
      `run ${JSON.stringify({ command: swap })}`,
      run(link),
      permission("f", "/etc"),
      run("/etc"),
    );
    for (const answer of ["was denied: not here", "leads out of the workspace"])
      expect(shown.join("")).toContain(answer);
    expect(existsSync(join(tree(), "two/here"))).toBe(false);
  });

  test("runs in no folder outside of the workspace, also where that of the session has become a link", async () => {
    const agent = await scripted();
    await agent.until(() => countWaits(agent) === 1);
    const folder = tree();
    renameSync(folder, `${folder}.moved`);
    symlinkSync("/etc", folder);
    expect((await ask(agent, call("terminal/create", { command: "pwd" }))).join("")).toContain("refused");
  });
});

describe("questions", () => {
  const asking = (properties: object) =>
    call("elicitation/create", {
      mode: "form",
      message: "Which?",
      requestedSchema: { type: "object", properties, required: Object.keys(properties) },
    });
  const states = (agent: RunningAgent) =>
    blocksOf(agent).flatMap(({ block }) => (block.case === "question" ? block.value.state : []));

  test.each<[string, object, string, string]>([
    ["a text", { name: { type: "string" } }, '{"name":"blue"}', '{"name":"blue"}'],
    [
      "a choice",
      { name: { type: "string", oneOf: [{ const: "b", title: "Blue" }] } },
      '{"name":"blue"}',
      '{"name":"b"}',
    ],
    ["a number", { count: { type: "integer" } }, '{"count":7}', '{"count":7}'],
    ["yes or no", { sure: { type: "boolean" } }, '{"sure":true}', '{"sure":true}'],
    ["several", { a: { type: "string" }, b: { type: "number" } }, '{"a":"x","b":1.5}', '{"a":"x","b":1.5}'],
  ])("for %s are answered with JSON", async (_, properties, answerJson, content) => {
    const agent = await scripted(
      {},
      {
        onApproval: ({ toolCallId, request }) => {
          expect(request).toMatchObject({ case: "question", value: { message: "Which?" } });
          expect(request.value).toMatchObject({ schemaJson: expect.stringContaining('"properties"') });
          const value = { approvalId: toolCallId, toolCallId, state: Approval.APPROVED, answerJson };
          return { case: "approval", value };
        },
      },
    );
    expect((await ask(agent, asking(properties))).at(-1)).toBe(
      `text: {"action":"accept","content":${content}}\n`,
    );
    expect(states(agent)).toEqual([2]);
  });

  test("are asked again after what is no answer, and can be declined", async () => {
    const answers = [
      { state: Approval.APPROVED, answerJson: '{"count":"many"}' },
      { state: Approval.DENIED, answerJson: "" },
    ];
    const ids: string[] = [];
    const agent = await scripted(
      {},
      {
        onApproval: ({ toolCallId }) => {
          ids.push(toolCallId);
          return { case: "approval", value: { approvalId: toolCallId, toolCallId, ...answers.shift() } };
        },
      },
    );
    const shown = await ask(agent, asking({ count: { type: "integer" } }));
    expect(shown.filter((line) => line.startsWith("error: "))).toEqual([
      "error: the answer is not of the form of the question's schema: it is asked again",
    ]);
    expect(shown.at(-1)).toBe('text: {"action":"decline"}\n');
    expect(new Set(ids).size).toBe(2);
    expect(states(agent)).toEqual([3, 3]);
  });

  test("are declined where the policy has nobody asked", async () => {
    const agent = await scripted({}, { onApproval: () => ({ case: "policy", value: { allowed: false } }) });
    expect((await ask(agent, asking({ name: { type: "string" } }))).at(-1)).toBe(
      'text: {"action":"decline"}\n',
    );
  });
});

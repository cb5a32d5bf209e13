import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import {
  addScriptedAgent,
  type Conversation,
  closeConversations,
  startConversation,
} from "../harness/agent-conversation.ts";
import { CHARTROOM, ROOT, terminalEnvironment, testWith } from "../harness/program.ts";
import { startRegisteredHostedRunner, stopRunners } from "../harness/runner-process.ts";
import {
  type ReachableServer,
  runCommand,
  runHostedCommand,
  startHostedServer,
  stopAll,
  temporaryFolder,
} from "../harness/server.ts";
import { until } from "../harness/until.ts";

let server: ReachableServer;
beforeAll(async () => {
  server = await startHostedServer();
  await addScriptedAgent(server, join(temporaryFolder(), "got"));
  await startRegisteredHostedRunner(server, { args: ["--agent-slots", "20"] });
});
afterEach(closeConversations);
afterAll(async () => {
  await stopRunners();
  await stopAll();
});

const credentials = () => ({ CHARTROOM_SERVER: server.url, CHARTROOM_TOKEN: server.token });
const settings = () => ({ XDG_CONFIG_HOME: temporaryFolder(), ...credentials() });
const chartroom = (...args: readonly string[]) => runHostedCommand(args, settings());
/** Runs a command, which succeeds, and returns its output. */
async function done(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await chartroom(...args);
  expect([code, stderr]).toEqual([0, ""]);
  return stdout;
}
/** Runs it like {@link done}, as a program: each command once. */
async function programDone(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runCommand(args, settings());
  expect([code, stderr]).toEqual([0, ""]);
  return stdout;
}
/** Runs a command, which fails, and returns its exit code and what it says. */
async function refused(...args: readonly string[]): Promise<[number | null, string]> {
  const { code, stdout, stderr } = await chartroom(...args);
  expect(stdout).toBe("");
  return [code, stderr.replace(/^chartroom: (.*)\n$/s, "$1")];
}
const approvals = async (...args: readonly string[]) =>
  JSON.parse(await done("approval", "list", "--json", ...args));

/** A run that asks for tool calls and questions, with what it waits for. */
async function asking(message: string): Promise<{ readonly run: Conversation; readonly id: string }> {
  const run = await startConversation(server);
  await run.say("one", message);
  return { run, id: await nextOf(run) };
}
async function nextOf(run: Conversation): Promise<string> {
  const [id] = await until(
    async () => (await run.get()).status.pendingApprovalIds,
    (ids) => ids.length > 0,
  );
  return id;
}
const shown = async (id: string) => JSON.parse(await done("approval", "show", id, "--json"));

describe("chartroom approval", () => {
  test("lists what waits, shows one, and approves what it shows", async () => {
    const { run, id } = await asking("ask x execute make all");
    const [head, row, ...others] = (await programDone("approval", "list", "--run", run.id))
      .trimEnd()
      .split("\n");
    expect(head).toMatch(/^APPROVAL +STATE +REQUESTED \(UTC\) +EXPIRES \(UTC\) +KIND +REQUESTED BY +TITLE$/);
    const cells = row?.split(/ {2,}/) ?? [];
    expect(cells.toSpliced(2, 2)).toEqual([id, "pending", "tool call", run.id, "make all"]);
    expect(others).toEqual([]);
    const text = await programDone("approval", "show", id);
    const { digest } = await shown(id);
    expect(text).toMatch(/^state +pending$/m);
    expect(text).toMatch(/^who decides +starter and administrators$/m);
    expect(text).toMatch(new RegExp(`^digest +${digest}$`, "m"));
    expect(text).toContain('"title": "make all"');
    expect(await programDone("approval", "approve", id, "--digest", digest, "--reason", "a test")).toBe(
      `approved ${id}, digest ${digest}\n`,
    );
    await run.untilOutput("x: is allowed: yes");
    expect(await approvals("--run", run.id)).toEqual([]);
    const all = await approvals("--run", run.id, "--all");
    expect(all).toMatchObject([{ id, state: "APPROVAL_STATE_APPROVED", decisions: [{ reason: "a test" }] }]);
    expect(await done("approval", "list", "--run", run.id, "--state", "approved")).toContain(id);
    expect(await done("approval", "show", id)).toMatch(/^decision +approved by user .*: a test$/m);
  });

  test("denies, with the reason that the agent receives", async () => {
    const { run, id } = await asking("ask x delete everything");
    const answer = JSON.parse(await programDone("approval", "deny", id, "--reason", "too much", "--json"));
    expect(answer).toMatchObject({ id, state: "APPROVAL_STATE_DENIED" });
    await run.untilOutput("x: is not allowed: no: too much");
  });

  test("answers a question", async () => {
    const { run, id } = await asking("question q Which port?");
    expect(await refused("approval", "approve", id, "--answer", "8080")).toEqual([
      1,
      "answerJson must be a JSON object, such as {}",
    ]);
    await done("approval", "approve", id, "--answer", '{"port": 8080}');
    await run.untilOutput('q: {"port":8080}');
  });

  test("decides nothing by the digest of something else, and says where to look", async () => {
    const { run, id } = await asking("ask x execute make");
    const stale = "0".repeat(64);
    const [code, why] = await refused("approval", "approve", id, "--digest", stale);
    expect([code, why]).toEqual([
      1,
      `nothing was decided: the digest is not that of what is asked now; look at it with chartroom approval show ${id} and decide again`,
    ]);
    expect(await refused("approval", "deny", id, "--digest", stale)).toEqual([1, why]);
    expect((await shown(id)).state).toBe("APPROVAL_STATE_PENDING");
    await done("run", "stop", run.id);
  });

  test("is refused a second time, and for an option that there is not", async () => {
    const { id } = await asking("ask x execute make");
    expect(await refused("approval", "approve", id, "--option", "maybe")).toEqual([
      1,
      "optionId names no option of the approval",
    ]);
    await done("approval", "approve", id);
    expect(await refused("approval", "deny", id)).toEqual([
      1,
      "the approval is APPROVED: there is nothing left to decide",
    ]);
  });

  test("ends with the codes of every command that calls a server", async () => {
    const none = "01900000-0000-7000-8000-000000000000";
    for (const command of ["show", "approve", "deny"])
      expect(await refused("approval", command, none)).toEqual([1, expect.stringMatching(/not found/)]);
    expect(await refused("approval", "list", "--all", "--state", "denied")).toEqual([
      1,
      "give one of --state and --all",
    ]);
    const env = { ...settings(), CHARTROOM_TOKEN: "cr_pat_wrong" };
    expect((await runCommand(["approval", "list"], env)).code).toBe(4);
  });
});

describe("chartroom run approve", () => {
  test("approves what a run waits for, if it is what was looked at", async () => {
    const { run, id } = await asking("ask x execute make\nask y execute deploy");
    const { digest } = await shown(id);
    await done("run", "approve", run.id, "--digest", digest);
    await run.untilOutput("x: is allowed: yes");
    const next = await nextOf(run);
    // What it waits for by now is something else.
    expect(await refused("run", "approve", run.id, "--digest", digest)).toEqual([
      1,
      `nothing was decided: the digest is not that of what is asked now; look at it with chartroom approval list --run ${run.id} and decide again`,
    ]);
    expect(await refused("run", "approve", run.id)).toEqual([
      1,
      "give --digest with that of what you have looked at, or --yes",
    ]);
    expect((await shown(next)).state).toBe("APPROVAL_STATE_PENDING");
    expect(JSON.parse(await done("run", "approve", run.id, "--yes", "--json"))).toMatchObject({ id: next });
    await run.untilOutput("y: is allowed: yes");
    expect(await refused("run", "approve", run.id, "--yes")).toEqual([
      1,
      `the run ${run.id} waits for no approval`,
    ]);
  });

  testWith("script")("shows it at a terminal, and asks first", async () => {
    const { run, id } = await asking("ask x execute make");
    expect(await atTerminal(`run approve ${run.id}`, "n")).toEqual([
      1,
      expect.stringContaining(`nothing was decided; chartroom approval deny ${id} denies it`),
    ]);
    expect((await shown(id)).state).toBe("APPROVAL_STATE_PENDING");
    const [code, seen] = await atTerminal(`run approve ${run.id}`, "y");
    expect(code).toBe(0);
    expect(seen).toMatch(/"title": "make".*Approve it\? \[y\/N\].*approved/s);
    await run.untilOutput("x: is allowed: yes");
  });
});

/** Runs a command at a terminal of its own, and answers its question. @returns its exit code, and all that was shown */
async function atTerminal(command: string, answer: string): Promise<[number, string]> {
  const child = spawn(
    "script",
    ["--quiet", "--return", "--command", `${CHARTROOM} ${command}`, "/dev/null"],
    { cwd: ROOT, env: { ...terminalEnvironment(), TERM: "xterm", ...credentials() } },
  );
  let seen = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    seen += text;
  });
  const ended = once(child, "close");
  await until(
    () => seen,
    (all) => all.includes("Approve it? [y/N]"),
  );
  child.stdin.write(`${answer}\r`);
  return [(await ended)[0], seen];
}

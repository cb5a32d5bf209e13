import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { chat } from "../../src/commands/chat/chat.ts";
import {
  addScriptedAgent,
  type Conversation,
  closeConversations,
  startConversation,
} from "../harness/agent-conversation.ts";
import { ROOT, terminalEnvironment, testWith } from "../harness/program.ts";
import { startRegisteredHostedRunner, stopRunners } from "../harness/runner-process.ts";
import {
  type ReachableServer,
  runHostedCommand,
  startHostedServer,
  stopAll,
  temporaryFolder,
} from "../harness/server.ts";
import { startServerProxy } from "../harness/server-proxy.ts";
import { until } from "../harness/until.ts";

let server: ReachableServer;
const chats: ChildProcess[] = [];
beforeAll(async () => {
  server = await startHostedServer();
  await addScriptedAgent(server, join(temporaryFolder(), "got"));
  await startRegisteredHostedRunner(server, { args: ["--agent-slots", "20"] });
});
afterAll(async () => {
  for (const { pid } of chats) if (pid !== undefined) process.kill(pid, "SIGKILL");
  closeConversations();
  await stopRunners();
  await stopAll();
});

/** The program with its standard input on a pipe. */
function startChat(
  { id }: Pick<Conversation, "id">,
  env: Record<string, string> = { CHARTROOM_TOKEN: server.token },
  { url = server.url, options = [] }: { url?: string; options?: readonly string[] } = {},
) {
  const args = ["bin/chartroom.js", "agent", "chat", id, "--server", url, ...options];
  // With no token of the person who runs the tests, which may be for a server that had the same address.
  const own = { PATH: process.env.PATH, XDG_CONFIG_HOME: temporaryFolder() };
  const child = spawn(process.execPath, args, { cwd: ROOT, env: { ...own, ...env } });
  chats.push(child);
  let [shown, complaints] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    shown += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaints += text;
  });
  const ended = once(child, "close").then(([code]) => {
    chats.splice(chats.indexOf(child), 1);
    return { code: code as number, shown, complaints };
  });
  return {
    type: (line: string) => child.stdin.write(`${line}\n`),
    end: () => child.stdin.end(),
    lines: () => shown.split("\n").slice(0, -1),
    until: (text: string) =>
      until(
        () => shown,
        (all) => all.includes(text),
      ),
    ended,
  };
}

const SENT = /^sent ([0-9a-f]{8})$/;
const ids = (lines: readonly string[]) => lines.flatMap((line) => SENT.exec(line)?.[1] ?? []);

describe("a chat on a pipe", () => {
  test("sends each line, shows what is answered to it, and is left after the last answer", async () => {
    const conversation = await startConversation(server);
    const at = startChat(conversation);
    for (const line of ["echo hello", "count", "edit a.txt words", "tool grep foo", "nonsense"])
      at.type(line);
    at.end();
    const { code, shown, complaints } = await at.ended;
    expect([code, complaints]).toEqual([0, ""]);
    const lines = shown.split("\n");
    const answers = lines.filter((line) => !/^(sent|\[|$)/.test(line));
    expect(answers).toEqual([
      "-- echo hello",
      "hello",
      "-- count",
      "2",
      "-- edit a.txt words",
      "created a.txt",
      "--- /dev/null",
      "+++ b/a.txt",
      "@@ -0,0 +1 @@",
      "+words",
      "-- tool grep foo",
      'tool grep {"words":"foo"}',
      "-- nonsense",
      "error: there is no command nonsense",
    ]);
    expect(lines.findLast((line) => line.startsWith("["))).toBe("[the run waits for input]");
    await conversation.stop();
  });

  test("shows the queue with its receipts, and rearranges it by the beginnings of ids", async () => {
    const conversation = await startConversation(server);
    const at = startChat(conversation);
    at.type("slow 1000");
    await at.until("step 1");
    for (const word of ["one", "two", "three", "four"]) at.type(`echo ${word}`);
    await until(
      () => ids(at.lines()),
      (sent) => sent.length === 5,
    );
    const [slow = "", one = "", two = "", three = "", four = ""] = ids(at.lines());
    at.type(`/move ${four.slice(0, 7)} ${one.slice(0, 7)}`);
    at.type(`/delete ${two}`);
    at.type("/queue");
    await at.until(`queued     ${three}  echo three\n`);
    expect(at.lines().filter((line) => line.startsWith("queued "))).toEqual([
      `queued     ${four}  echo four`,
      `queued     ${one}  echo one`,
      `queued     ${three}  echo three`,
    ]);
    at.type(`/steer ${three}`);
    await at.until("steered: echo three");
    at.type("/inputs");
    await at.until(`seen       ${three}  echo three`);
    expect(at.lines()).toContain(`seen       ${slow}  slow 1000`);
    expect(at.lines()).toContain(`deleted    ${two}  echo two`);
    at.type("/steer nosuch");
    await at.until("\nno message in the queue has an id that begins nosuch\n");
    at.type("/frob");
    await at.until("there is no /frob: type /help");
    at.type("/stop");
    const { code, shown } = await at.ended;
    expect(code).toBe(0);
    expect(shown).toContain("[the run has stopped]");
    expect(shown).not.toContain("-- echo four");
  });

  test("gives goals and orders, and may be left while the agent works", async () => {
    const conversation = await startConversation(server);
    const at = startChat(conversation);
    at.type("/goal win");
    await at.until("its goal is active");
    at.type("/goal pause");
    await at.until("its goal is paused");
    at.type("/goal resume");
    at.type("/compact");
    at.type("goal completed");
    await at.until("its goal is completed");
    expect(at.lines()).toContain("compact");
    at.type("slow 1000");
    await at.until("step 2");
    at.type("/leave");
    const { code } = await at.ended;
    expect([code, (await conversation.get()).status.phase]).toEqual([0, "PHASE_RUNNING"]);
    await conversation.stop();
  });

  test("tells why a run failed, and fails with it", async () => {
    const conversation = await startConversation(server);
    const at = startChat(conversation);
    at.type("fail out of luck");
    const { code, shown } = await at.ended;
    expect(code).toBe(2);
    expect(shown).toContain("it failed: the agent's program ended with exit status 1: out of luck");
  });

  test("without a good token, a server or a run says so in a sentence", async () => {
    const conversation = await startConversation(server);
    expect(await startChat(conversation, {}).ended).toMatchObject({
      code: 4,
      complaints: expect.stringMatching(/^chartroom: there is no token for .*CHARTROOM_TOKEN\n$/),
    });
    expect(await startChat(conversation, { CHARTROOM_TOKEN: "cr_pat_no" }).ended).toMatchObject({
      code: 4,
      complaints: expect.stringMatching(/^chartroom: the token is not valid: put another .*CHARTROOM_TOKEN/),
    });
    const nobody = { id: "01900000-0000-7000-8000-000000000000" };
    const { code, complaints } = await startChat(nobody).ended;
    expect([code, complaints]).toEqual([
      1,
      expect.stringMatching(/^chartroom: .*it does not exist, or you may not see it/),
    ]);
    const wrong = await runHostedCommand(["agent", "chat", nobody.id, "--server", "nowhere"], {
      CHARTROOM_TOKEN: "x",
    });
    expect(wrong.stderr).toMatch(/--server must be an http or https URL/);
    await conversation.stop();
  });
});

describe("a chat whose server goes away", () => {
  /** No server has this port. */
  const NOWHERE = { url: "http://127.0.0.1:1" };
  const token = () => ({ CHARTROOM_TOKEN: server.token });

  test("says so, says when it is back, and shows what was missed, each block once", async () => {
    const conversation = await startConversation(server);
    const proxy = await startServerProxy(server);
    const at = startChat(conversation, token(), proxy);
    at.type("echo before");
    await at.until("-- echo before\nbefore\n");
    proxy.forwardTo(NOWHERE);
    proxy.closeConnections();
    await at.until(`[the server ${proxy.url} cannot be reached`);
    expect(at.lines().at(-1)).toMatch(/; trying again for 300 seconds\]$/);
    await conversation.say("missed", "echo meanwhile");
    await conversation.untilOutput("meanwhile");
    at.type("echo lost");
    await at.until("not done, the server cannot be reached (");
    proxy.forwardTo(server);
    await at.until(`[the server ${proxy.url} is back]`);
    at.type("echo after");
    await at.until("-- echo after\nafter\n");
    at.end();
    const { code, shown, complaints } = await at.ended;
    expect([code, complaints]).toEqual([0, ""]);
    const lines = shown.split("\n");
    for (const word of ["before", "meanwhile", "after"]) {
      expect(lines.filter((line) => line === word)).toHaveLength(1);
    }
    expect(lines.filter((line) => line.startsWith("[the server"))).toHaveLength(2);
    await proxy.stop();
    await conversation.stop();
  });

  test("shows what was missed before what has become of the run", async () => {
    const conversation = await startConversation(server);
    const proxy = await startServerProxy(server);
    const at = startChat(conversation, token(), proxy);
    at.type("echo before");
    await at.until("-- echo before\nbefore\n");
    await at.until("[the run waits for input]");
    proxy.forwardTo(NOWHERE);
    proxy.closeConnections();
    await at.until(`[the server ${proxy.url} cannot be reached`);
    await conversation.say("missed", "echo meanwhile");
    await conversation.untilOutput("meanwhile");
    await conversation.stop();
    proxy.forwardTo(server);
    const { shown } = await at.ended;
    expect(shown.split("\n").slice(-4)).toEqual([
      "-- echo meanwhile",
      "meanwhile",
      "[the run has stopped]",
      "",
    ]);
    await proxy.stop();
  });

  test("says nothing of a connection that is there again at once", async () => {
    const conversation = await startConversation(server);
    const proxy = await startServerProxy(server);
    const at = startChat(conversation, token(), proxy);
    at.type("echo before");
    await at.until("-- echo before\nbefore\n");
    proxy.closeConnections();
    await conversation.say("after", "echo after");
    await at.until("after\n");
    at.end();
    const { code, shown } = await at.ended;
    expect(code).toBe(0);
    expect(shown).not.toContain("[the server");
    await proxy.stop();
    await conversation.stop();
  });

  test("gives up after the time that it was given, with a sentence", async () => {
    const conversation = await startConversation(server);
    const proxy = await startServerProxy(server);
    const at = startChat(conversation, token(), { url: proxy.url, options: ["--retry-for", "1"] });
    await at.until("[the run");
    proxy.forwardTo(NOWHERE);
    proxy.closeConnections();
    const { code, complaints } = await at.ended;
    expect(code).toBe(3);
    expect(complaints).toMatch(
      /^chartroom: the server http:\/\/127\.0\.0\.1:\d+ cannot be reached \(.+\), for 1 seconds now: .*try again later\n$/,
    );
    await proxy.stop();
    await conversation.stop();
  });

  test("that was never there is reported as well, and to leave then is no success", async () => {
    const conversation = await startConversation(server);
    const at = startChat(conversation, token(), NOWHERE);
    await at.until("[the server http://127.0.0.1:1 cannot be reached");
    at.type("/leave");
    const { code, complaints } = await at.ended;
    expect([code, complaints]).toEqual([
      1,
      expect.stringMatching(
        /^chartroom: the chat was left while the server .* could not be reached: [^\n]+\n$/,
      ),
    ]);
    const wrong = await startChat(conversation, token(), { options: ["--retry-for", "soon"] }).ended;
    expect(wrong).toMatchObject({
      code: 1,
      complaints: 'chartroom: --retry-for must be a whole number from 0 to 86400, not "soon"\n',
    });
    await conversation.stop();
  });
});

describe("a chat in a terminal", () => {
  testWith("npx", "script")("shows the stream and the queue to the person who types", async () => {
    const conversation = await startConversation(server);
    const command = `npx chartroom agent chat ${conversation.id} --server ${server.url}`;
    // It gives the command a terminal of its own, and ends with its status.
    const child = spawn("script", ["--quiet", "--return", "--command", command, "/dev/null"], {
      cwd: ROOT,
      env: { ...terminalEnvironment(), TERM: "xterm", CHARTROOM_TOKEN: server.token },
    });
    chats.push(child);
    const ended = once(child, "close");
    let shown = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      shown += stripVTControlCharacters(text);
    });
    const untilShown = (text: RegExp) =>
      until(
        () => shown,
        (all) => text.test(all),
      );
    await untilShown(/> /);
    child.stdin.write("slow 1000\r");
    await untilShown(/-- slow 1000.*step 2/s);
    child.stdin.write("echo later\r");
    await untilShown(/(sent [0-9a-f]{8}.*){2}/s);
    child.stdin.write("/queue\r");
    await untilShown(/queued {5}[0-9a-f]{8} {2}echo later/);
    child.stdin.write("/stop\r");
    expect((await ended)[0]).toBe(0);
    chats.splice(chats.indexOf(child), 1);
    expect(shown).toContain("[the run has stopped]");
  });

  test("prints plain lines where the terminal is dumb, and is left by /leave", async () => {
    const conversation = await startConversation(server);
    const input = Object.assign(new PassThrough(), { isTTY: true });
    const output = new PassThrough().setEncoding("utf8");
    let shown = "";
    output.on("data", (text: string) => {
      shown += text;
    });
    const { url, token } = server;
    const place = { server: url, token, agentExecutionId: conversation.id, retryForMs: 60_000 };
    const chatting = chat({ ...place, input, output, isDumb: true });
    input.write("echo hello\n");
    await until(
      () => shown,
      (all) => all.includes("\nhello\n"),
    );
    input.write("/leave\n");
    expect(await chatting).toBe(true);
    expect(shown).toContain("-- echo hello\nhello\n");
    for (const control of ["\u{1b}", "\r", "\n> "]) expect(`\n${shown}`).not.toContain(control);
    await conversation.stop();
  });

  test("prints whole lines above the one that is typed, and no control characters of an agent", async () => {
    // Where it is "dumb", readline moves no cursor. It is set back after the file.
    process.env.TERM = "xterm";
    const conversation = await startConversation(server);
    await conversation.say("red", "echo \u{1b}[31mred");
    const input = Object.assign(new PassThrough(), { isTTY: true });
    const output = Object.assign(new PassThrough(), { columns: 20 });
    let shown = "";
    output.setEncoding("utf8").on("data", (text: string) => {
      shown += text;
    });
    const { url, token } = server;
    const chatting = chat({
      server: url,
      token,
      agentExecutionId: conversation.id,
      retryForMs: 60_000,
      input,
      output,
    });
    await until(
      () => shown,
      (all) => all.includes("\u{1b}[J\u{fffd}[31mred\n"),
    );
    // A person who joins later sees what it answers, too.
    expect(shown).toContain("-- echo \u{fffd}[31mred\n");
    input.write("echo hel");
    await conversation.say("other", "echo meanwhile");
    await until(
      () => shown,
      (all) => all.includes("\u{1b}[Jmeanwhile\n"),
    );
    input.write("lo\r");
    await until(
      () => shown,
      (all) => all.includes("\u{1b}[Jhello\n"),
    );
    // Over a pasted line of three rows, of which readline learns when it prints it again, and goes up from then on.
    const before = shown.length;
    input.write("x".repeat(50));
    await conversation.say("third", "echo above");
    const printed = await until(
      () => shown.slice(before).split("\u{1b}[2A\r\u{1b}[J").slice(1),
      (pieces) => pieces.some((piece) => piece.startsWith("above")),
    );
    expect(printed[0]).toMatch(/^[^\n]+\n(?!\n)/);
    expect(printed.find((piece) => piece.startsWith("above"))).toMatch(/^above\n\n\n(?!\n)/);
    const forgetLine = "\u0015";
    input.write(`${forgetLine}/leave\r`);
    expect(await chatting).toBe(true);
    // What was typed is below the line that came.
    expect(stripVTControlCharacters(shown.slice(shown.indexOf("Jmeanwhile") + 1))).toMatch(
      /^meanwhile\s+> echo hel/,
    );
    await conversation.stop();
  });
});

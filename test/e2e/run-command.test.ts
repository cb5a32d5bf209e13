import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { addScriptedAgent, closeConversations, conversationOf } from "../harness/agent-conversation.ts";
import { post } from "../harness/call.ts";
import { freePort } from "../harness/free-port.ts";
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
import { originOf, page, signIn } from "../harness/session.ts";
import { until } from "../harness/until.ts";

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\n$/;

let server: ReachableServer;
/** The folder of the user's settings. */
let home: string;
beforeAll(async () => {
  server = await startHostedServer();
  await addScriptedAgent(server, join(temporaryFolder(), "got"));
  await startRegisteredHostedRunner(server, { args: ["--agent-slots", "20"] });
});
beforeEach(() => {
  home = temporaryFolder();
});
afterAll(async () => {
  closeConversations();
  await stopRunners();
  await stopAll();
});

/** Runs a command as a user whose terminal has a server and a token. */
const chartroom = (
  args: readonly string[],
  env: Record<string, string> = {},
  input = "",
  command = runHostedCommand,
) => {
  const settings = { XDG_CONFIG_HOME: home, CHARTROOM_SERVER: server.url, CHARTROOM_TOKEN: server.token };
  return command(args, { ...settings, ...env }, input);
};
/** Runs `chartroom run ...`, which succeeds, and returns its output. */
async function run(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await chartroom(["run", ...args]);
  expect([code, stderr]).toEqual([0, ""]);
  return stdout;
}
/** Runs it like {@link run}, as a program: each of them once. */
async function runProgram(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await chartroom(["run", ...args], {}, "", runCommand);
  expect([code, stderr]).toEqual([0, ""]);
  return stdout;
}
const startRun = async (...args: readonly string[]) => (await run("start", ...args)).trim();
const refused = ({ code, stdout, stderr }: Awaited<ReturnType<typeof chartroom>>) => {
  expect(stdout).toBe("");
  expect(stderr).toMatch(/^chartroom: .*\n$/);
  return [code, stderr.slice("chartroom: ".length).trimEnd()];
};

describe("chartroom run", () => {
  test("starts a run with its first message, and prints the answer", async () => {
    const started = await runProgram("start", "--prompt", "echo hello", "--name", "Try it");
    expect(started).toMatch(ID);
    const id = started.trim();
    const shown = await runProgram("watch", id, "--until-waiting");
    expect(shown).toContain("-- echo hello\nhello\n");
    const { body } = await post(server, "AgentService/GetAgentExecution", { agentExecutionId: id });
    expect(body.agentExecution.metadata.name).toBe("Try it");
    const more = await run("start", "--prompt", "echo again", "--watch", "--until-waiting");
    expect(more.slice(0, 37)).toMatch(ID);
    expect(more).toContain("\nagain\n");
  });

  test("prints what a run has answered before what it does now", async () => {
    const id = await startRun("--prompt", "echo hello");
    await run("watch", id, "--until-waiting");
    const again = await run("watch", id, "--until-waiting");
    expect(again).toBe("-- echo hello\nhello\n[the run waits for input]\n");
  });

  test("sends messages, from the command line and from standard input", async () => {
    const id = await startRun();
    expect(await runProgram("send", id, "echo one")).toMatch(ID);
    const fed = await chartroom(["run", "send", id], {}, "echo two\n", runCommand);
    expect([fed.code, fed.stderr]).toEqual([0, ""]);
    expect(await run("watch", id, "--until-waiting")).toMatch(/one\n.*two\n/s);
  });

  test("steers a message into the turn that goes on, and sends one that nothing is ahead of", async () => {
    const id = await startRun("--prompt", "slow 1000");
    // Before its turn has begun, what is steered would come before it.
    await until(conversationOf(server, id).output, (said) => said.length > 0);
    await run("send", id, "echo later");
    await run("send", id, "enough", "--steer");
    // Only that word ends the first turn before its thousandth step.
    const shown = await run("watch", id, "--until-waiting");
    expect(shown).toContain("-- echo later\nlater\n");
    expect(shown).not.toContain("step 1000");
    expect(await run("send", id, "echo now", "--steer")).toMatch(ID);
    expect(await run("watch", id, "--until-waiting")).toContain("now\n");
  });

  test("prints a JSON object a line", async () => {
    const id = await startRun("--prompt", "echo hello");
    const lines = (await run("watch", id, "--until-waiting", "--json")).trimEnd().split("\n");
    const events = lines.map((line) => JSON.parse(line));
    expect(events[0].agentExecution.id).toBe(id);
    const texts = events.flatMap(({ block }) => block?.text?.content ?? []);
    expect(texts.join("")).toBe("hello\n");
    const started = JSON.parse(await run("start", "--json"));
    expect(`${started.agentExecutionId}\n`).toMatch(ID);
  });

  test("lists runs by phase and agent, up to a limit", async () => {
    const [stopped, waiting] = [await startRun("--name", "Over"), await startRun("--prompt", "echo x")];
    await run("watch", waiting, "--until-waiting");
    await run("stop", stopped);
    await run("watch", stopped);
    const table = await runProgram("list", "--limit", "2");
    const [head, ...rows] = table.trimEnd().split("\n");
    expect(head).toMatch(/^RUN +PHASE +STARTED \(UTC\) +AGENT +NAME +FAILURE$/);
    expect(rows.map((row) => row.split(/ {2,}/).toSpliced(2, 1))).toEqual([
      [waiting, "waiting", "scripted"],
      [stopped, "stopped", "scripted", "Over"],
    ]);
    const ids = async (...args: string[]) =>
      JSON.parse(await run("list", "--json", ...args)).map(({ id }: { id: string }) => id);
    expect(await ids("--phase", "stopped", "--agent", "scripted")).toEqual([stopped]);
    expect((await ids("--phase", "waiting", "stopped")).slice(0, 2)).toEqual([waiting, stopped]);
    expect(await ids("--limit", "1")).toEqual([waiting]);
  });

  test("resumes a run that has stopped, and prints the output of the new one", async () => {
    const first = await startRun("--prompt", "echo one", "--name", "Try it");
    await run("watch", first, "--until-waiting");
    const early = refused(await chartroom(["run", "resume", first]));
    expect(early).toEqual([1, expect.stringMatching(/has not stopped: send to it, or stop it/)]);
    await runProgram("stop", first);
    await run("watch", first);
    const resumed = await runProgram("resume", first, "echo two", "--watch", "--until-waiting");
    expect(resumed.slice(0, 37)).toMatch(ID);
    // The states that the server sends before the blocks of a turn come after them, the last of them once.
    expect(
      resumed.slice(37).replace(/^(\[the run (works|waits for its environment or a runner)\]\n)*/, ""),
    ).toBe("-- echo two\ntwo\n[the run waits for input]\n");
    const second = resumed.slice(0, 36);
    expect(await run("watch", second, "--until-waiting")).toMatch(/-- echo one\none\n.*-- echo two\ntwo\n/s);
    expect(refused(await chartroom(["run", "resume", first]))).toEqual([
      1,
      `the agent run was resumed as ${second}: go on with that one`,
    ]);
    await run("stop", second);
    await run("watch", second);
    const fed = await chartroom(["run", "resume", second, "-", "--json"], {}, "echo three\n");
    expect([fed.code, fed.stderr]).toEqual([0, ""]);
    const third = JSON.parse(fed.stdout).agentExecutionId;
    expect(await run("watch", third, "--until-waiting")).toContain("-- echo three\nthree\n");
  });

  test("ends with a code of its own when the run has failed", async () => {
    const id = await startRun("--prompt", "fail badly");
    const { code, stdout } = await chartroom(["run", "watch", id], {}, "", runCommand);
    expect([code, stdout]).toEqual([2, expect.stringContaining("it failed:")]);
    expect(await run("list", "--limit", "1")).toContain("agent_execution:");
  });
});

describe("a command that calls a server says what is wrong, and ends with a code for scripts:", () => {
  const nowhere = async () => `http://127.0.0.1:${await freePort()}`;

  test("no such run", async () => {
    const none = "01900000-0000-7000-8000-000000000000";
    for (const args of [
      ["watch", none],
      ["send", none, "x"],
      ["stop", none],
      ["resume", none],
    ])
      expect(refused(await chartroom(["run", ...args]))).toEqual([1, expect.stringMatching(/not found/)]);
  });

  test("no such agent, and the ones there are", async () => {
    const answer = refused(await chartroom(["run", "start", "--agent", "nobody"]));
    expect(answer).toEqual([1, "there is no agent nobody: there are scripted"]);
  });

  test.each([
    [["start", "--project", "a", "--url", "b"], "give one of --project, --environment and --url"],
    [
      ["start", "--class", "a"],
      "--class goes with --url: projects and environments have classes of their own",
    ],
    [["start", "--prompt", ""], "the text is empty"],
    [["list", "--limit", "0"], '--limit must be a whole number from 1 to 100000, not "0"'],
  ])("run %j", async (args, why) => {
    expect(refused(await chartroom(["run", ...args]))).toEqual([1, why]);
  });

  test("no server there", async () => {
    const url = await nowhere();
    const answer = refused(await chartroom(["run", "list"], { CHARTROOM_SERVER: url }));
    const reason = "nothing listens there: start it, or name another by --server \\(connect ECONNREFUSED ";
    expect(answer).toEqual([3, expect.stringMatching(`^the server ${url} cannot be reached: ${reason}`)]);
    const watch = ["run", "watch", "01900000-0000-7000-8000-000000000000", "--retry-for", "0"];
    const { code } = await chartroom(watch, { CHARTROOM_SERVER: url });
    expect(code).toBe(3);
  });

  test("a server that is none of Chartroom, and one of Chartroom under another path", async () => {
    const other = createServer((request, response) => {
      const [, status = "405"] = /^\/(\d+)\//.exec(request.url ?? "") ?? [];
      request.resume().on("end", () => response.writeHead(Number(status)).end());
    });
    other.listen(0, "127.0.0.1");
    await once(other, "listening");
    const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
    const ask = async (CHARTROOM_SERVER: string) =>
      refused(await chartroom(["run", "list"], { CHARTROOM_SERVER }, "", runCommand));
    const advice = "name the server, without a path of its console or its API, by --server";
    const sentence = (at: string) => `${at} does not answer like a Chartroom server: ${advice}`;
    expect((await ask(url))[1]).toBe(sentence(url));
    expect(await ask(`${server.url}/nope`)).toEqual([1, sentence(`${server.url}/nope`)]);
    for (const [status, why] of [
      [413, "it limits the size of bodies; remove its limit, since the server has its own"],
      [429, "it limits how often it is called; try again later, or raise its limit"],
      [503, "it gets no answer from the server; check that the server runs, and where the proxy sends calls"],
    ] as const) {
      expect(await ask(`${url}/${status}`)).toEqual([
        3,
        `the server ${url}/${status} cannot be reached: a proxy in front of the server answered HTTP ${status}: ${why}`,
      ]);
    }
    other.close();
  });

  test.each([
    ["application/json", '{"hello": "world"}'],
    ["text/html", "<title>Sign in</title>"],
    ["application/proto", "something"],
  ])("something that answers each call with success, in %s", async (type, body) => {
    const other = createServer((request, response) => {
      request.resume().on("end", () => response.writeHead(200, { "content-type": type }).end(body));
    });
    other.listen(0, "127.0.0.1");
    await once(other, "listening");
    const CHARTROOM_SERVER = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
    const sentence = new RegExp(
      `${CHARTROOM_SERVER} does not answer like a Chartroom server: name the server`,
    );
    const id = "01900000-0000-7000-8000-000000000000";
    for (const args of [
      ["run", "list"],
      ["run", "watch", id],
      ["workflow", "watch", id],
      ["login", "--device"],
    ])
      expect(refused(await chartroom(args, { CHARTROOM_SERVER }))).toEqual([
        1,
        expect.stringMatching(sentence),
      ]);
    other.closeAllConnections();
    other.close();
  });

  test("a server of a release that lacks the operation", async () => {
    // It gives the real server's answer to an operation that no release has.
    const older = createServer(async (request, response) => {
      const { authorization = "", "content-type": type = "" } = request.resume().headers;
      const headers = { authorization, "content-type": type };
      const answer = await fetch(`${server.url}${request.url}Else`, { method: "POST", headers });
      response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
      response.end(await answer.bytes());
    });
    older.listen(0, "127.0.0.1");
    await once(older, "listening");
    const url = `http://127.0.0.1:${(older.address() as AddressInfo).port}`;
    expect(refused(await chartroom(["run", "list"], { CHARTROOM_SERVER: url }))).toEqual([
      1,
      `the server ${url} does not know this operation: it is of another release than this program; upgrade the older of the two`,
    ]);
    older.closeAllConnections();
    older.close();
  });

  test("a server that is called by https and does not speak it", async () => {
    const url = server.url.replace("http:", "https:");
    const answer = refused(await chartroom(["run", "list"], { CHARTROOM_SERVER: url }));
    expect(answer).toEqual([
      3,
      `the server ${url} cannot be reached: it does not speak TLS there: try http://`,
    ]);
  });

  test("a name where an id belongs", async () => {
    expect(refused(await chartroom(["run", "watch", "mine"]))).toEqual([
      1,
      "the run must be an id: chartroom run list shows the ids",
    ]);
  });

  test("a name that is too short or too long", async () => {
    expect(refused(await chartroom(["runner", "create", "ab"]))).toEqual([
      1,
      "the name must have at least 3 characters: give a longer one",
    ]);
    expect(refused(await chartroom(["run", "start", "--name", "x".repeat(101)]))).toEqual([
      1,
      "the name must have at most 100 characters: give a shorter one",
    ]);
  });

  test("no token, or one that does not hold", async () => {
    const none = refused(await chartroom(["run", "list"], { CHARTROOM_TOKEN: "" }));
    expect(none).toEqual([4, expect.stringMatching(/^there is no token for http.*chartroom login/)]);
    const wrong = refused(await chartroom(["run", "list"], { CHARTROOM_TOKEN: "cr_pat_wrong" }));
    const remedy = "put another one into CHARTROOM_TOKEN, or unset it and chartroom login";
    expect(wrong).toEqual([4, `the token is not valid: ${remedy}`]);
    // Their text is not shown: a token may be part of it.
    for (const text of ["cr_pat_one\ncr_pat_two", "cr_pat_€"])
      expect(refused(await chartroom(["run", "list"], { CHARTROOM_TOKEN: text }))).toEqual([
        4,
        "the value of CHARTROOM_TOKEN is no token: tokens have no blanks in them, and only ASCII characters",
      ]);
  });
});

describe("chartroom login", () => {
  const login = (token: string, url = server.url) =>
    runHostedCommand(["login", "--server", url], { XDG_CONFIG_HOME: home }, `${token}\n`);
  const file = () => join(home, "chartroom", "credentials.json");
  const list = () => runHostedCommand(["run", "list"], { XDG_CONFIG_HOME: home });

  test("stores a token that only its owner can read, for later commands", async () => {
    const { code, stdout, stderr } = await login(server.token);
    expect([code, stdout, stderr]).toEqual([
      0,
      expect.stringMatching(`^logged in to ${server.url} as user .* of organization .*\n$`),
      "",
    ]);
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    expect((await list()).code).toBe(0);
  });

  test("stores no token that does not hold, and keeps the one before", async () => {
    expect(refused(await login("cr_pat_wrong"))).toEqual([
      4,
      expect.stringMatching(/^the token is not valid: give one of this server, .*chartroom token create/),
    ]);
    expect(refused(await list())[0]).toBe(4);
    await login(server.token);
    await login("cr_pat_wrong");
    expect((await list()).code).toBe(0);
  });

  test.each([
    ["", "no token was given: chartroom token create makes one"],
    ["two words", "that is no token: tokens have no blanks in them"],
  ])("of %j is refused", async (token, why) => {
    expect(refused(await login(token))).toEqual([1, why]);
  });

  testWith("script")("does not show at a terminal what is pasted", async () => {
    const command = `${CHARTROOM} login --paste --server ${server.url}`;
    // It gives the command a terminal of its own, and ends with its status.
    const child = spawn("script", ["--quiet", "--return", "--command", command, "/dev/null"], {
      cwd: ROOT,
      env: { ...terminalEnvironment(), TERM: "xterm", XDG_CONFIG_HOME: home },
    });
    let shown = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      shown += text;
    });
    const ended = once(child, "close");
    await until(
      () => shown,
      (all) => all.includes(`Access token for ${server.url}: `),
    );
    child.stdin.write(`${server.token}\r`);
    expect((await ended)[0]).toBe(0);
    expect(shown).toContain(`logged in to ${server.url} as user`);
    expect(shown).not.toContain(server.token);
    expect((await list()).code).toBe(0);
  });

  testWith("script")("at a terminal has a person allow it in a browser", async () => {
    const { cookie } = await signIn(server, server.token);
    const command = `${CHARTROOM} login --server ${server.url}`;
    const child = spawn("script", ["--quiet", "--return", "--command", command, "/dev/null"], {
      cwd: ROOT,
      env: { ...terminalEnvironment(), TERM: "xterm", XDG_CONFIG_HOME: home },
    });
    let shown = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      shown += text;
    });
    const ended = once(child, "close");
    await until(
      () => shown,
      (all) => all.includes("the code holds 15 minutes"),
    );
    const [, address, code] =
      /Open (\S+) in a browser, on any machine, and type the code (\S+)/.exec(shown) ?? [];
    expect(address).toBe(`${originOf(server)}/sign-in/device`);
    const { userId } = (await page(server, "device/request", { code }, { cookie })).body.person;
    expect((await page(server, "device/decide", { code, allow: true, userId }, { cookie })).status).toBe(200);
    expect((await ended)[0]).toBe(0);
    expect(shown).toContain(`logged in to ${server.url} as user`);
    expect(shown).not.toContain("cr_pat_");
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    expect((await list()).code).toBe(0);
    const { body } = await post(server, "UserService/ListPersonalAccessTokens");
    const descriptions = body.personalAccessTokens.map(
      ({ description }: { description: string }) => description,
    );
    expect(descriptions).toContain(`chartroom login on ${hostname()}`);
  });

  test("is undone by logout", async () => {
    await login(server.token);
    const logout = () => runCommand(["logout"], { XDG_CONFIG_HOME: home });
    expect(
      (await runCommand(["logout", "--server", "http://other.example.org"], { XDG_CONFIG_HOME: home }))
        .stdout,
    ).toBe("there was no login to http://other.example.org\n");
    expect((await logout()).stdout).toMatch(`logged out of ${server.url}`);
    expect(refused(await list())[0]).toBe(4);
    expect((await post(server, "IdentityService/GetAuthenticatedIdentity")).status).toBe(200);
  });

  test("trusts no file that others can read, and none that is broken", async () => {
    await login(server.token);
    chmodSync(file(), 0o640);
    expect(refused(await list())).toEqual([1, expect.stringMatching(/open to other users: chmod 600/)]);
    chmodSync(file(), 0o600);
    writeFileSync(file(), '{"server": 1}');
    expect(refused(await list())).toEqual([1, expect.stringMatching(/is no credentials file/)]);
  });
});

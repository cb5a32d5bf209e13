import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect } from "@jest/globals";
import { SETTINGS } from "../../src/config/config.ts";
import { post } from "../harness/call.ts";
import { blockOf, fencedBlocks } from "../harness/fenced-blocks.ts";
import { CHARTROOM, PROGRAMS, ROOT, runProgram, terminalEnvironment, testWith } from "../harness/program.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";

const readme = fencedBlocks("README.md");
const inTerminal = testWith("npm", "npx", "bash", "curl");

const env = {
  ...terminalEnvironment(),
  XDG_STATE_HOME: temporaryFolder(),
  CHARTROOM_PORT: "0",
  CHARTROOM_DATA_DIR: temporaryFolder(),
};

/** A server that was started by npm. */
interface NpmServer {
  readonly npm: ChildProcess;
  readonly url: string;
  output(): string;
  log(): string;
}

const started: ChildProcess[] = [];
let first: NpmServer;
let second: NpmServer;
let token = "";

beforeAll(async () => {
  first = await startByNpm("npm start", /-d '.*'\n/);
  token = /^ {2}(cr_pat_\w+)$/m.exec(first.output())?.[1] ?? "";
});

afterAll(async () => {
  for (const { pid } of started) {
    try {
      process.kill(-(pid ?? Number.NaN), "SIGKILL");
    } catch {
      // Nothing of the group is left, as it should be.
    }
  }
  await stopAll();
});

/** Types a command that starts the server, and waits until it has printed something. */
async function startByNpm(command: string, last: RegExp): Promise<NpmServer> {
  // A group of its own, so that nothing of it outlives the tests whatever happens to npm.
  const [program = "", ...args] = command.trim().replaceAll("$PWD", ROOT).split(" ");
  const npm = spawn(program, args, { cwd: ROOT, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  started.push(npm);
  let [output, log] = ["", ""];
  npm.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  npm.stderr.setEncoding("utf8").on("data", (text: string) => {
    log += text;
  });
  const failed = new Promise<string>((resolve) => {
    npm.once("error", (error) => resolve(error.message));
    npm.once("exit", (code) => resolve(`${command} ended with ${code}:\n${output}${log}`));
  });
  while (!last.test(output)) {
    const problem = await Promise.race([failed, once(npm.stdout, "data")]);
    if (typeof problem === "string") throw new Error(problem);
  }
  const url = /^Chartroom is ready at (\S+)$/m.exec(output)?.[1] ?? "";
  return { npm, url, output: () => output, log: () => log };
}

/** Ends a server as npm passes it on, and waits until it has. */
async function endByNpm({ npm, url, log }: NpmServer): Promise<void> {
  const closed = once(npm, "close");
  npm.kill("SIGTERM");
  await once(npm, "exit");
  await expect(fetch(`${url}/healthz`)).rejects.toThrow();
  await closed;
  expect(log().trimEnd().split("\n").pop()).toContain('"msg":"stopped"');
}

/** What `npx chartroom` does, without npm, whose own start takes longer than the commands. Two tests below run npx itself. */
const NPX = `npx() { [ "$1" = chartroom ] && PATH='${PROGRAMS}':"$PATH" ${CHARTROOM} "\${@:2}"; }\n`;

/** Pastes commands into another terminal than the server's; what they print. */
async function printed({ url }: NpmServer, ...commands: readonly string[]): Promise<string> {
  const text = NPX + commands.join("echo\n").replaceAll("http://127.0.0.1:8080", url);
  const { code, stdout, stderr } = await runProgram("bash", ["-e", "-c", text]);
  if (code !== 0) throw new Error(`bash ended with ${code}:\n${stderr}`);
  return stdout;
}

/** Pastes commands into another terminal than the server's; their answers. */
async function paste(server: NpmServer, ...commands: readonly string[]): Promise<unknown[]> {
  const lines = (await printed(server, ...commands)).split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line));
}

/** Waits until somebody is asked for this. To look by the command would take a processor for itself. */
async function asked(title: string): Promise<void> {
  await until(
    () => post({ ...second, token }, "ApprovalService/ListApprovals", {}),
    ({ body }) => JSON.stringify(body).includes(title),
  );
}

const hello = expect.objectContaining({
  metadata: expect.objectContaining({ name: "hello" }),
  initializer: {
    specs: [{ git: expect.objectContaining({ remoteUri: "https://git.example.org/team/hello.git" }) }],
  },
});

describe("the README", () => {
  inTerminal("starts the server with one command, which prints where it is and one token", async () => {
    expect(blockOf(readme, "Run it", "sh")).toBe("npm ci && npm start\n");
    expect(first.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(first.output().match(/cr_pat_\w+/g)).toEqual([token, token]);
    expect(first.log()).not.toContain(token);
  });

  inTerminal("has a first call that stores a project and a second that finds it", async () => {
    const [setToken, create, list] = [0, 1, 2].map((position) =>
      blockOf(readme, "A first call", "sh", position),
    ) as [string, string, string];
    expect(setToken).toBe("export TOKEN=cr_pat_...\n");
    const [created, listed] = await paste(first, `export TOKEN=${token}\n${create}`, list);
    expect(created).toEqual({ project: hello });
    expect(listed).toEqual({
      pagination: { nextToken: "" },
      projects: [hello],
      count: { value: 1, relation: "COUNT_RESPONSE_RELATION_EQUAL" },
    });
  });

  inTerminal("sends people to a start whose own call can be pasted as it is", async () => {
    const call = /^ {2}curl (?:.*\\\n)+.*\n/m.exec(first.output())?.[0] ?? "";
    expect(await paste(first, call)).toEqual([{ project: hello }]);
  });

  inTerminal("has the help list every setting, whichever Node the terminal has", async () => {
    const { code, stdout } = await runProgram("npx", ["chartroom", "--help"]);
    expect(code).toBe(0);
    for (const { flag, env: variable } of Object.values(SETTINGS)) {
      expect(stdout).toContain(flag);
      expect(stdout).toContain(variable);
    }
  });

  inTerminal("makes another token while the server runs", async () => {
    const { code, stdout } = await runProgram("npx", ["chartroom", "token", "create"], { env });
    expect(code).toBe(0);
    const other = stdout.trim();
    expect(other).toMatch(/^cr_pat_\w+$/);
    expect(other).not.toBe(token);
    const server = { url: first.url, token: other };
    expect((await post(server, "IdentityService/GetAuthenticatedIdentity")).status).toBe(200);
  });

  inTerminal("starts a server that has ended in good order when npm, asked to end, has", async () => {
    await endByNpm(first);
  });

  const withGit = testWith("npm", "npx", "bash", "curl", "git", "node", "bwrap");
  const folder = join(temporaryFolder(), "hello");
  const blocksOf = (section: string, count: number) =>
    Array.from({ length: count }, (_, position) =>
      blockOf(readme, section, "sh", position).replaceAll("/tmp/hello", folder),
    );

  withGit(
    "runs a first workflow, whose output is there to be read, on a server started again with a runner",
    async () => {
      const [start = "", repository, call, create, run, read] = blocksOf("A first workflow", 6);
      second = await startByNpm(start, /^Chartroom is ready at .*\n/m);
      const setToken = `export TOKEN=${token}\n`;
      const execution = await printed(
        second,
        `${setToken}${repository}${call}${create}${run}printf %s "$EXECUTION"\n`,
      );
      expect(execution).toMatch(/^[0-9a-f-]{36}$/);
      const readIt = `${setToken}EXECUTION=${execution}\n${call}${read}`;
      const asked = { filter: { workflowExecutionIds: [execution] } };
      await until(
        () => post({ ...second, token }, "WorkflowService/ListWorkflowExecutionOutputs", asked),
        ({ body }) => body.outputs.length > 0,
      );
      const [answer] = (await paste(second, readIt)) as [{ outputs: unknown[] }];
      expect(answer.outputs).toMatchObject([{ values: { lines: { intValue: "2" } } }]);
    },
  );

  withGit("starts a first agent on the repository, sends it a message and shows its answer", async () => {
    const [, , call] = blocksOf("A first workflow", 3);
    const [add, run, chat, ask, approve, resume] = blocksOf("A first agent", 6);
    const surroundings = `export TOKEN=${token} CHARTROOM_DATA_DIR=${env.CHARTROOM_DATA_DIR}\n`;
    expect(await printed(second, `${surroundings}${add}`)).toMatch(/^agent [0-9a-f-]{36}\n$/);
    // Nothing is typed, so that the chat ends with the answer.
    const shown = await printed(second, `${surroundings}${call}${run}${chat}echo "run=$RUN"\n`);
    expect(shown).toContain(
      "modified hello.txt\n--- a/hello.txt\n+++ b/hello.txt\n@@ -1,0 +2 @@\n+Good morning\n",
    );
    expect(shown).toMatch(/\[the run waits for input\]\n/);
    const goingOn = `${surroundings}RUN=${/^run=(.*)$/m.exec(shown)?.[1]}\n`;
    await printed(second, `${goingOn}${ask}`);
    await asked("make all");
    expect(await printed(second, `${goingOn}npx chartroom approval list\n`)).toContain("make all");
    expect(await printed(second, `${goingOn}${approve}`)).toContain("\napproved ");
    const resumed = await printed(second, `${goingOn}${resume}`);
    expect(resumed).toContain("build: is allowed: yes\n");
    expect(resumed).toContain("+Good evening\n");
  });

  withGit("is followed by the page of the Agent Client Protocol, whose example can be pasted", async () => {
    const page = fencedBlocks("docs/agents/acp.md");
    const [start, send, approve, answer, resume] = Array.from({ length: 5 }, (_, position) =>
      blockOf(page, "Try it", "sh", position).replaceAll("/tmp/hello", folder),
    );
    const data = `export CHARTROOM_DATA_DIR=${env.CHARTROOM_DATA_DIR}\n`;
    const begun = await printed(second, `${data}${start}echo "run=$RUN"\n`);
    expect(begun).toContain("modified hello/hello.txt\n");
    const setRun = `RUN=${/^run=(.*)$/m.exec(begun)?.[1]}\n`;
    await printed(second, `${setRun}${send}`);
    await asked("cat hello.txt");
    expect(await printed(second, `${setRun}${approve}`)).toContain("\napproved ");
    await asked("Which colour?");
    const output = await printed(second, `${setRun}${answer}`);
    expect(output).toContain("Good afternoon\n");
    expect(output).toMatch(/\nblue\n/);
    expect(await printed(second, `${setRun}${resume}`)).toMatch(/\n3\n/);
  });

  withGit("ends with the server in good order", async () => {
    await endByNpm(second);
  });
});

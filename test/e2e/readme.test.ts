import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect } from "@jest/globals";
import { SETTINGS } from "../../src/config.ts";
import { post } from "../harness/call.ts";
import { blockOf, fencedBlocks } from "../harness/fenced-blocks.ts";
import { ROOT, runProgram, terminalEnvironment, testWith } from "../harness/program.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";

const readme = fencedBlocks("README.md");
const inTerminal = testWith("npm", "npx", "bash", "curl");

let env: Record<string, string | undefined>;
let npm: ChildProcess;
let output = "";
let log = "";
let url = "";
let token = "";

beforeAll(async () => {
  env = { ...terminalEnvironment(), CHARTROOM_PORT: "0", CHARTROOM_DATA_DIR: temporaryFolder() };
  // A group of its own, so that nothing of it outlives the tests whatever happens to npm.
  npm = spawn("npm", ["start"], { cwd: ROOT, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  npm.stdout?.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  npm.stderr?.setEncoding("utf8").on("data", (text: string) => {
    log += text;
  });
  const failed = new Promise<string>((resolve) => {
    npm.once("error", (error) => resolve(error.message));
    npm.once("exit", (code) => resolve(`npm start ended with ${code}:\n${output}${log}`));
  });
  while (!/-d '.*'\n/.test(output)) {
    const problem = await Promise.race([failed, once(npm.stdout ?? npm, "data")]);
    if (typeof problem === "string") throw new Error(problem);
  }
  url = /^Chartroom is ready at (\S+)$/m.exec(output)?.[1] ?? "";
  token = /^ {2}(cr_pat_\w+)$/m.exec(output)?.[1] ?? "";
});

afterAll(async () => {
  try {
    process.kill(-(npm.pid ?? Number.NaN), "SIGKILL");
  } catch {
    // Nothing of the group is left, as it should be.
  }
  await stopAll();
});

/** Pastes commands into a terminal beside the server; their answers. */
async function paste(...commands: readonly string[]): Promise<unknown[]> {
  const text = commands.join("echo\n").replaceAll("http://127.0.0.1:8080", url);
  const { code, stdout, stderr } = await runProgram("bash", ["-e", "-c", text]);
  if (code !== 0) throw new Error(`bash ended with ${code}:\n${stderr}`);
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
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
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(output.match(/cr_pat_\w+/g)).toEqual([token, token]);
    expect(log).not.toContain(token);
  });

  inTerminal("has a first call that stores a project and a second that finds it", async () => {
    const [setToken, create, list] = [0, 1, 2].map((position) =>
      blockOf(readme, "A first call", "sh", position),
    ) as [string, string, string];
    expect(setToken).toBe("export TOKEN=cr_pat_...\n");
    const [created, listed] = await paste(`export TOKEN=${token}\n${create}`, list);
    expect(created).toEqual({ project: hello });
    expect(listed).toEqual({
      pagination: { nextToken: "" },
      projects: [hello],
      count: { value: 1, relation: "COUNT_RESPONSE_RELATION_EQUAL" },
    });
  });

  inTerminal("sends people to a start whose own call can be pasted as it is", async () => {
    const call = /^ {2}curl (?:.*\\\n)+.*\n/m.exec(output)?.[0] ?? "";
    expect(await paste(call)).toEqual([{ project: hello }]);
  });

  inTerminal("has the help list every setting, whichever Node the terminal has", async () => {
    const { code, stdout } = await runProgram("npx", ["chartroom", "--help"]);
    expect(code).toBe(0);
    for (const { flag, env: variable } of Object.values(SETTINGS)) {
      expect(stdout).toContain(flag);
      expect(stdout).toContain(variable);
    }
  });

  inTerminal("makes another token beside the running server", async () => {
    const { code, stdout } = await runProgram("npx", ["chartroom", "token", "create"], { env });
    expect(code).toBe(0);
    const other = stdout.trim();
    expect(other).toMatch(/^cr_pat_\w+$/);
    expect(other).not.toBe(token);
    expect((await post({ url, token: other }, "IdentityService/GetAuthenticatedIdentity")).status).toBe(200);
  });

  inTerminal("starts a server that has ended in good order when npm, told to end, has", async () => {
    const closed = once(npm, "close");
    npm.kill("SIGTERM");
    await once(npm, "exit");
    await expect(fetch(`${url}/healthz`)).rejects.toThrow();
    await closed;
    expect(log.trimEnd().split("\n").pop()).toContain('"msg":"stopped"');
  });
});

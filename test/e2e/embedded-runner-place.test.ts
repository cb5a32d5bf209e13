import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { stateFolder } from "../../src/config/state-folder.ts";
import { readLog } from "../harness/action-log.ts";
import { closeConversations, startConversation } from "../harness/agent-conversation.ts";
import { post, reasonOf } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { bareRepository, runGit } from "../harness/git-repository.ts";
import { newExchangeToken, startRunnerProcess, stopRunners } from "../harness/runner-process.ts";
import {
  type HostedServer,
  type ReachableServer,
  runHostedCommand,
  startHostedServer,
  stopAll,
  temporaryFolder,
} from "../harness/server.ts";
import { startExecution, task } from "../harness/started-execution.ts";
import { until } from "../harness/until.ts";

const IN_WORKING_TREE = /^the workspaces are inside a git working tree/;
const AS_ROOT = /^the runner runs as root/;

let server: ReachableServer;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(async () => {
  closeConversations();
  await stopRunners();
  await stopAll();
});

const LOCAL = ["--local-runner", "--allow-file-remotes"];
const messages = (each: Pick<HostedServer, "log">) => each.log().map(({ msg }) => String(msg));
const warned = (lines: readonly string[], pattern: RegExp) => lines.some((line) => pattern.test(line));
const takesWork = (each: HostedServer) =>
  until(
    () => messages(each),
    (lines) => lines.includes("the runner takes work"),
  );
const workspacesIn = (folder: string) => readdirSync(join(folder, "workspaces"));
/** The folder of a server's workspaces in a state home that no other server uses. */
function workDirIn(stateHome: string): string {
  const servers = join(stateFolder({ XDG_STATE_HOME: stateHome }), "servers");
  const [only = "", ...more] = readdirSync(servers);
  expect(more).toEqual([]);
  return join(servers, only);
}

describe("what the server's own runner starts", () => {
  /** A working tree, as Chartroom's own checkout is where the server is started in it. */
  let around: string;
  let stateHome: string;
  let local: HostedServer;
  const seen = () => join(around, "seen");
  beforeAll(async () => {
    around = temporaryFolder();
    runGit(around, ["init", "-q"]);
    stateHome = join(around, "state");
    const dataDir = join(around, "data");
    const add = ["--form", "text", "--default", "--data-dir", dataDir];
    local = await startHostedServer({ dataDir, args: LOCAL, env: { XDG_STATE_HOME: stateHome } });
    const command = `cat > /dev/null; (pwd; git rev-parse --show-toplevel || echo none) > ${seen()}.part 2>&1; mv ${seen()}.part ${seen()}`;
    const words = JSON.stringify(["sh", "-c", command]);
    expect((await runHostedCommand(["agent", "add", "looker", "--command", words, ...add])).code).toBe(0);
  });
  const here = () => ({ url: local.url, token: local.token });

  test("is in the user's state folder and in no working tree: an agent in an empty environment", async () => {
    const conversation = await startConversation(here());
    await conversation.say("1", "look");
    const text = await until(
      () => (existsSync(seen()) ? readFileSync(seen(), "utf8") : ""),
      (all) => all !== "",
    );
    const [folder = "", ...answer] = text.trim().split("\n");
    expect(folder.startsWith(join(workDirIn(stateHome), "workspaces"))).toBe(true);
    expect(answer).toEqual([expect.stringMatching(/^fatal: not a git repository/), "none"]);
    await conversation.stop();
  });

  test("and a step above its repository", async () => {
    const repository = bareRepository(temporaryFolder(), { "a.txt": "one\n" });
    const run = await startExecution(here(), {
      repository: () => repository.url,
      steps: [task("git rev-parse --show-toplevel; cd ..; git rev-parse --show-toplevel || echo none")],
    });
    const [action] = await until(run.actions, (all) => all.length > 0);
    const [own, ...above] = (await readLog(here(), action.id)).trim().split("\n");
    expect(own?.startsWith(join(workDirIn(stateHome), "workspaces"))).toBe(true);
    expect(above).toEqual([expect.stringMatching(/^fatal: not a git repository/), "none"]);
  });

  test("where the folder is in a working tree all the same, the log says what that means", () => {
    const line = local.log().find(({ msg }) => IN_WORKING_TREE.test(String(msg)));
    expect(line).toMatchObject({ level: "warn", folder: workDirIn(stateHome), workingTree: around });
  });
});

test("workspaces stay where they are until they end, and new ones are made in the new folder", async () => {
  const dataDir = temporaryFolder();
  const stateHome = temporaryFolder();
  // Where earlier releases had them, which recorded nothing.
  const earlier = join(dataDir, "runner");
  const first = await startHostedServer({ dataDir, args: [...LOCAL, "--local-runner-work-dir", earlier] });
  const { token } = first;
  const call = ({ url }: HostedServer, operation: string, body: object) =>
    post({ url, token }, `EnvironmentService/${operation}`, body);
  const create = async (on: HostedServer): Promise<string> => {
    const { id } = (await succeeded(call(on, "CreateEnvironment", {}))).environment;
    await until(
      () => succeeded(call(on, "GetEnvironment", { environmentId: id })),
      ({ environment }) => environment.status.phase === "ENVIRONMENT_PHASE_RUNNING",
    );
    return id;
  };
  const old = await create(first);
  expect(workspacesIn(earlier)).toEqual([old]);
  await first.stop();
  rmSync(join(earlier, "workspaces.json"));

  const env = { XDG_STATE_HOME: stateHome };
  const second = await startHostedServer({ dataDir, args: LOCAL, env });
  const next = await create(second);
  expect([workspacesIn(earlier), workspacesIn(workDirIn(stateHome))]).toEqual([[old], [next]]);
  await second.stop();

  // What was used in between is recorded as well.
  const third = await startHostedServer({
    dataDir,
    args: [...LOCAL, "--local-runner-work-dir", temporaryFolder()],
  });
  for (const id of [old, next]) {
    await succeeded(call(third, "DeleteEnvironment", { environmentId: id }));
    await until(
      () => call(third, "GetEnvironment", { environmentId: id }),
      (answer) => reasonOf(answer) === "NOT_FOUND",
    );
  }
  expect([workspacesIn(earlier), workspacesIn(workDirIn(stateHome))]).toEqual([[], []]);
  await third.stop();
});

test("two servers of one user have folders of their own", async () => {
  const env = { XDG_STATE_HOME: temporaryFolder() };
  const both = await Promise.all([1, 2].map(() => startHostedServer({ args: LOCAL, env })));
  await Promise.all(both.map(takesWork));
  expect(readdirSync(join(stateFolder(env), "servers"))).toHaveLength(2);
  for (const each of both) expect(warned(messages(each), IN_WORKING_TREE)).toBe(false);
  await Promise.all(both.map((each) => each.stop()));
});

describe("a runner without --state-dir", () => {
  test("keeps its token and workspaces in the user's state folder", async () => {
    const { exchangeToken } = await newExchangeToken(server);
    const XDG_STATE_HOME = temporaryFolder();
    const options = { stateDir: "", cwd: temporaryFolder() };
    const env = { XDG_STATE_HOME, CHARTROOM_EXCHANGE_TOKEN: exchangeToken };
    const runner = startRunnerProcess(server, { ...options, env });
    await runner.untilLogged("the runner takes work");
    await runner.stop();
    const runners = join(stateFolder({ XDG_STATE_HOME }), "runners");
    const [folder = ""] = readdirSync(runners);
    expect(readdirSync(join(runners, folder))).toEqual(
      expect.arrayContaining(["prebuilds", "runner.json", "workspaces"]),
    );
    expect(readdirSync(options.cwd)).toEqual([]);
  });

  test("goes on with the token that an earlier release left in the working directory", async () => {
    const { exchangeToken } = await newExchangeToken(server);
    const cwd = temporaryFolder();
    const first = startRunnerProcess(server, {
      stateDir: join(cwd, "runner"),
      env: { CHARTROOM_EXCHANGE_TOKEN: exchangeToken },
    });
    await first.untilLogged("the runner takes work");
    await first.stop();
    const XDG_STATE_HOME = temporaryFolder();
    const again = startRunnerProcess(server, { stateDir: "", cwd, env: { XDG_STATE_HOME } });
    await again.untilLogged("the runner takes work");
    await again.stop();
    const advice = again.log().find(({ msg }) => /^the runner's token is still in/.test(String(msg)));
    const runners = join(stateFolder({ XDG_STATE_HOME }), "runners");
    expect(readdirSync(join(runners, readdirSync(runners)[0] ?? ""))).toEqual([
      "owner.json",
      "prebuilds",
      "repository-cache",
      "workspaces",
    ]);
    // Who does as the log says keeps the workspaces of both.
    const stateDir = /--state-dir (\S+) *,/.exec(String(advice?.msg))?.[1] ?? "";
    expect(stateDir).toBe("./runner");
    const advised = startRunnerProcess(server, { stateDir, cwd, env: { XDG_STATE_HOME } });
    await advised.untilLogged("the runner takes work");
    await advised.stop();
    expect(JSON.parse(readFileSync(join(cwd, "runner/workspaces.json"), "utf8"))).toEqual([
      join(cwd, "runner"),
      advice?.workspaces,
    ]);
  });
});

test("a runner says at its start when it runs as root, and only then", async () => {
  const isRoot = process.getuid?.() === 0;
  const local = await startHostedServer({ args: LOCAL });
  await takesWork(local);
  expect(warned(messages(local), AS_ROOT)).toBe(isRoot);
  await local.stop();
  const runner = startRunnerProcess(
    { url: "http://127.0.0.1:1" },
    { env: { CHARTROOM_EXCHANGE_TOKEN: "x" } },
  );
  await runner.untilLogged("the server cannot be reached; trying again");
  const lines = runner.log().map(({ msg }) => String(msg));
  expect(lines.filter((line) => AS_ROOT.test(line))).toHaveLength(isRoot ? 1 : 0);
  await runner.stop();
  const plain = await startHostedServer();
  expect(warned(messages(plain), AS_ROOT)).toBe(false);
  await plain.stop();
});

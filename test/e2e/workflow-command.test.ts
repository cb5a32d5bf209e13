import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { post } from "../harness/call.ts";
import { doAction, type FakeRunner, registerRunner, succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import {
  type ReachableServer,
  runCommand,
  runHostedCommand,
  startHostedServer,
  stopAll,
  temporaryFolder,
} from "../harness/server.ts";
import { task } from "../harness/started-execution.ts";

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\n$/;

let server: ReachableServer;
let runner: FakeRunner;
let home: string;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
  runner = await registerRunner(server);
  home = temporaryFolder();
});
afterAll(stopAll);

/** Runs a command as a user whose terminal has a server and a token. */
const chartroom = (args: readonly string[], input = "", command = runHostedCommand) =>
  command(
    args,
    { XDG_CONFIG_HOME: home, CHARTROOM_SERVER: server.url, CHARTROOM_TOKEN: server.token },
    input,
  );
/** Runs a command that succeeds, and returns its output. */
async function run(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await chartroom(args);
  expect([code, stderr]).toEqual([0, ""]);
  return stdout;
}
async function refusal(...args: readonly string[]) {
  const { code, stdout, stderr } = await chartroom(args);
  expect([code, stdout]).toEqual([1, ""]);
  return stderr;
}

/** A workflow of two steps over one repository; its id. */
async function createWorkflow(name: string): Promise<string> {
  const { workflow } = await succeeded(
    post(server, "WorkflowService/CreateWorkflow", {
      name,
      triggers: [
        {
          manual: {},
          context: { repositories: { repositoryUrls: { repoUrls: ["https://git.example.org/team/a.git"] } } },
        },
      ],
      action: {
        limits: { maxParallel: 2, maxTotal: 2 },
        steps: [task("echo {{ .Parameters.greeting }}"), task("two")],
      },
    }),
  );
  return workflow.id;
}

const leaseAction = () => runner.leaseOne({ kinds: ["WORK_KIND_ACTION"] });
const logs = (stepIndex: number, offset: number, text: string) => [
  { stepIndex, offset: String(offset), data: Buffer.from(text).toString("base64") },
];

describe("chartroom workflow", () => {
  test("starts a workflow by its name, follows it, and prints what its steps print", async () => {
    const name = `Greet ${v7()}`;
    const id = await createWorkflow(name);
    expect(await run("workflow", "list", "--search", name)).toContain(`${id}  enabled`);
    const started = await run("workflow", "start", name, "--parameter", "greeting=good day = hello");
    expect(started).toMatch(ID);
    const executionId = started.trim();
    const work = await leaseAction();
    const { actionId } = work.action;
    const watched = chartroom(["workflow", "watch", executionId]);
    const followed = chartroom(["workflow", "logs", actionId, "--follow"]);
    await succeeded(runner.report(work, { logs: logs(0, 0, "hel") }));
    await succeeded(runner.report(work, { logs: logs(0, 3, "lo\u001b[31m\n") }));
    expect(await run("workflow", "show", name)).toContain(executionId);
    expect(await run("workflow", "show", executionId)).toContain(actionId);
    await succeeded(runner.finish(work, "OUTCOME_FAILED"));
    const end = await watched;
    expect([end.code, end.stderr]).toEqual([2, ""]);
    expect(end.stdout).toContain(`action ${actionId}`);
    expect(end.stdout).toMatch(new RegExp(`execution ${executionId}: (partially )?failed`));
    expect(await followed).toMatchObject({ code: 0, stdout: "hello\ufffd[31m\n" });
    expect(await run("workflow", "logs", executionId, "--step", "0")).toBe("hello\ufffd[31m\n");
    const [piece] = (await run("workflow", "logs", actionId, "--json")).split("\n");
    expect(JSON.parse(piece ?? "")).toMatchObject({ data: Buffer.from("hel").toString("base64") });

    const again = chartroom(["workflow", "retry", executionId, "--watch", "--json"], "", runCommand);
    const second = await leaseAction();
    await doAction(runner, second);
    const { code, stdout } = await again;
    const [first = "", ...lines] = stdout.trim().split("\n");
    const retried = JSON.parse(first).workflowExecutionId;
    expect(code).toBe(0);
    expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({
      id: retried,
      status: { conclusion: "WORKFLOW_EXECUTION_CONCLUSION_SUCCEEDED" },
    });
    expect(JSON.parse(await run("workflow", "show", retried, "--json"))).toMatchObject({
      workflowExecution: { metadata: { retriedExecutionId: executionId } },
      actions: [{ id: second.action.actionId }],
    });
  });

  test("prints logs once the server is reached, also where the first call fails", async () => {
    const id = await createWorkflow(`Late ${v7()}`);
    const executionId = (await run("workflow", "start", id, "--parameter", "greeting=late")).trim();
    const work = await leaseAction();
    await succeeded(runner.report(work, { logs: logs(0, 0, "hello\r\n") }));
    await succeeded(runner.finish(work, "OUTCOME_FAILED"));
    let cut = 0;
    const proxy = createServer((client) => {
      client.on("error", () => undefined);
      if (cut < 2) {
        cut += 1;
        return client.destroy();
      }
      const upstream = connect(Number(new URL(server.url).port), "127.0.0.1");
      upstream.on("error", () => client.destroy());
      return client.pipe(upstream).pipe(client);
    }).listen(0, "127.0.0.1");
    await once(proxy, "listening");
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const { code, stdout, stderr } = await chartroom(["workflow", "logs", executionId, "--server", url]);
    proxy.close();
    expect([code, stdout, cut]).toEqual([0, "hello\n", 2]);
    expect(stderr).toMatch(/trying again for 300 seconds\n.*is back\n$/s);
  });

  test("cancels an execution, which then counts as not succeeded", async () => {
    const id = await createWorkflow(`Stop ${v7()}`);
    const repository = "https://git.example.org/team/other.git";
    const started = await run(
      "workflow",
      "start",
      id,
      "--parameter",
      "greeting=hi",
      "--repository",
      repository,
      "--json",
    );
    const { workflowExecutionId } = JSON.parse(started);
    await run("workflow", "cancel", workflowExecutionId);
    const { code, stdout } = await chartroom(["workflow", "watch", workflowExecutionId]);
    expect([code, stdout]).toEqual([2, expect.stringContaining("stopped")]);
  });

  test("says what to do about what it cannot do", async () => {
    const name = `Twice ${v7()}`;
    const ids = [await createWorkflow(name), await createWorkflow(name)];
    expect(await refusal("workflow", "start", name)).toBe(
      `chartroom: 2 workflows have the name ${name}: give an id, of ${ids.join(", ")}\n`,
    );
    expect(await refusal("workflow", "start", "none such")).toContain("chartroom workflow list shows");
    expect(await refusal("workflow", "show", v7())).toContain("it does not exist, or you may not see it");
    expect(await refusal("workflow", "start", name, "--parameter", "x")).toContain(
      "--parameter takes KEY=VALUE",
    );
    const both = ["--repository", "https://git.example.org/a.git", "--project", v7()];
    expect(await refusal("workflow", "start", name, ...both)).toContain(
      "give one of --repository and --project",
    );
    expect(await refusal("workflow", "logs", v7(), "--step", "50")).toContain("--step");
  });
});

test("chartroom runner create makes a runner, and list shows it; the program itself takes its flags as before", async () => {
  const { code, stdout, stderr } = await chartroom(["runner", "create", "builder"], "", runCommand);
  const [runnerId = "", token] = stdout.split("\n");
  expect([code, token]).toEqual([0, expect.stringMatching(/^cr_/)]);
  expect(stderr).toContain(`chartroom runner --server ${server.url}`);
  expect(stderr).not.toContain(token ?? "");
  const nowhere = {
    XDG_CONFIG_HOME: home,
    CHARTROOM_SERVER: "http://127.0.0.1:1",
    CHARTROOM_TOKEN: server.token,
  };
  for (const words of [
    ["list", "--server", server.url],
    ["--server", server.url, "list"],
  ]) {
    expect(await runHostedCommand(["runner", ...words], nowhere)).toEqual({
      code: 0,
      stdout: expect.stringMatching(new RegExp(`${runnerId}  \\w+ .*builder`)),
      stderr: "",
    });
  }
  const listed = JSON.parse(await run("runner", "list", "--json"));
  expect(listed).toEqual(expect.arrayContaining([expect.objectContaining({ runnerId })]));
  const spec = { desiredPhase: "RUNNER_PHASE_INACTIVE" };
  await succeeded(post(server, "RunnerService/UpdateRunner", { runnerId, spec }));
  expect(await run("runner", "list")).toMatch(new RegExp(`${runnerId}  created, paused `));
  expect(await refusal("runner", "create", "ab")).toContain("name");
});

test("chartroom project import makes a project of each line that it can, and names the others", async () => {
  const list =
    "# ours\nhttps://git.example.org/team/one.git\n\nnot an address\nhttps://git.example.org/team/two.git\n" +
    "https://me:s3cr3t@git.example.org/team/three.git\n";
  const { code, stdout, stderr } = await chartroom(["project", "import"], list);
  expect(code).toBe(1);
  expect(stdout).toContain("https://git.example.org/team/one.git");
  expect(stderr).toMatch(/^line 4: not an address: .*\nline 6: https:\/\/me:\*\*\*@git.* password.*\n$/);
  expect(await run("project", "list", "--search", "two")).toContain("https://git.example.org/team/two.git");
  expect(JSON.parse(await run("project", "list", "--json"))).toHaveLength(2);
  expect(await refusal("project", "import", `${home}/none`)).toContain("cannot be read");
});

test("chartroom environment list shows environments, of some phases or projects", async () => {
  const [project] = JSON.parse(await run("project", "list", "--json"));
  const { environment } = await succeeded(
    post(server, "EnvironmentService/CreateEnvironmentFromProject", { projectId: project.id }),
  );
  const filter = ["--project", project.id, "--phase", "creating", "starting", "running"];
  expect(await run("environment", "list", ...filter)).toContain(environment.id);
  expect(await run("environment", "list", "--phase", "deleting")).toBe("no environments\n");
  const [listed] = JSON.parse(await run("environment", "list", "--project", project.id, "--json"));
  expect(listed.id).toBe(environment.id);
});

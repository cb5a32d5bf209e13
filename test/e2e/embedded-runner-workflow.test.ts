import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { readLog } from "../harness/action-log.ts";
import type { Answer } from "../harness/call.ts";
import { type BareRepository, bareRepository } from "../harness/git-repository.ts";
import { type RunnerProcess, startRegisteredRunner, stopRunners } from "../harness/runner-process.ts";
import { type ReachableServer, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { startExecution, task, type WorkflowRunOptions } from "../harness/started-execution.ts";
import { until } from "../harness/until.ts";

let server: ReachableServer;
let runner: RunnerProcess;
let repository: BareRepository;
beforeAll(async () => {
  server = await startHostedServer();
  repository = bareRepository(temporaryFolder(), { "a.txt": "one\n" }, "hello.git");
  runner = await startRegisteredRunner(server);
});
afterAll(async () => {
  await stopRunners();
  await stopAll();
});

const start = (run: WorkflowRunOptions) =>
  startExecution(server, { repository: () => repository.url, ...run });
type Started = Awaited<ReturnType<typeof start>>;

/** The execution's actions once it is over. */
async function over(run: Started): Promise<Answer["body"][]> {
  await until(run.execution, ({ status }) => /COMPLETED|STOPPED/.test(status.phase));
  return run.actions();
}
/** The one action of a new execution, once it is over. */
const ranOnce = async (run: WorkflowRunOptions): Promise<Answer["body"]> => (await over(await start(run)))[0];
const phases = ({ status }: Answer["body"]) =>
  status.stepStatuses.map(({ phase }: { phase: string }) => phase.replace("STEP_PHASE_", ""));
const reasons = (errors: readonly { reason: string }[]) => errors.map(({ reason }) => reason);
const output = (key: string, command: string, type: object) => ({ title: key, key, command, ...type });

describe("a workflow", () => {
  test("runs its steps in one environment, one after the other, and its outputs can be read", async () => {
    const run = await start({
      steps: [
        task("cat a.txt; echo two > b.txt"),
        { report: { outputs: [output("files", "ls | wc -l", { integer: { min: 2, max: 2 } })] } },
      ],
      report: {
        outputs: [output("seen", `tr -d '\\n ' < "$CHARTROOM_OUTPUTS"`, { string: {} })],
      },
    });
    const [action, report] = await over(run);
    expect([phases(action), phases(report)]).toEqual([["DONE", "DONE"], ["DONE"]]);
    expect(await readLog(server, action.id)).toBe("one\n");
    const { outputs } = await run.call("ListWorkflowExecutionOutputs", {
      filter: { workflowExecutionIds: [run.executionId] },
    });
    expect(outputs).toHaveLength(2);
    expect(outputs[0]).toMatchObject({ actionId: action.id, values: { files: { intValue: "2" } } });
    expect(JSON.parse(outputs[1].values.seen.stringValue)).toMatchObject({ outputs: [outputs[0]] });
    expect(existsSync(join(runner.stateDir, "workspaces", action.status.environmentId))).toBe(false);
  });

  test("gives its commands the action's facts, a name for commits, and nothing of the runner's", async () => {
    const action = await ranOnce({ steps: [task('env | cut -d= -f1 | sort; echo "$CHARTROOM_ACTION_ID"')] });
    const lines = (await readLog(server, action.id)).trim().split("\n");
    expect(lines.at(-1)).toBe(action.id);
    expect(lines.slice(0, -1).filter((name) => !/^(PWD|OLDPWD|SHLVL|_)$/.test(name))).toEqual([
      "CHARTROOM_ACTION_ID",
      "CHARTROOM_ENVIRONMENT_ID",
      "CHARTROOM_ENVIRONMENT_TOKEN",
      "CHARTROOM_EXECUTION_ID",
      "CHARTROOM_URL",
      "CHARTROOM_WORKFLOW_ID",
      "GIT_AUTHOR_EMAIL",
      "GIT_AUTHOR_NAME",
      "GIT_CEILING_DIRECTORIES",
      "GIT_COMMITTER_EMAIL",
      "GIT_COMMITTER_NAME",
      "HOME",
      "LANG",
      "PATH",
    ]);
  });

  test("lets its commands call the service as their environment, and no log tells their token", async () => {
    const asked = `curl -s "$CHARTROOM_URL/api/service.v1.IdentityService/GetAuthenticatedIdentity" \
      -H "Authorization: Bearer $CHARTROOM_ENVIRONMENT_TOKEN" -H 'Content-Type: application/json' -d '{}'`;
    const [head, tail] = ["cut -c1-10", "cut -c11-"].map(
      (cut) => `echo $CHARTROOM_ENVIRONMENT_TOKEN | ${cut}`,
    );
    const spelled = `printf %s $(${head}); sleep 0.4; ${tail}`;
    const action = await ranOnce({ steps: [task(`${asked}; echo; ${spelled}`)] });
    const [answer = "", printed] = (await readLog(server, action.id)).split("\n");
    expect(JSON.parse(answer).subject).toMatchObject({ id: action.status.environmentId });
    expect(printed).toBe("***");
  });

  test("goes no further than a step that fails, whose log stays", async () => {
    const action = await ranOnce({ steps: [task("echo before; exit 3"), task("touch after")] });
    expect(phases(action)).toEqual(["FAILED", "CANCELLED"]);
    const { error } = action.status.stepStatuses[0];
    expect([error.reason, error.message]).toEqual(["command_failed", "the command ended with exit status 3"]);
    expect(reasons(action.status.failures)).toEqual(["command_failed"]);
    expect(await readLog(server, action.id)).toBe("before\n");
    await runner.untilLogged("work ended", {
      action: action.id,
      outcome: "failed",
      reason: "command_failed",
    });
  });

  test("takes a command that begins with a dash as one, and tells both outputs in their order", async () => {
    const action = await ranOnce({ steps: [task("-x; echo reached")] });
    expect(await readLog(server, action.id)).toMatch(/^.*-x: not found\nreached\n$/);
  });

  test.each<[string, object, string, RegExp]>([
    ["an agent's step without an agent", { agent: { prompt: "Do it" } }, "refused_by_service", /agent/],
    [
      "an output that an agent is to answer and there is none",
      { report: { outputs: [{ title: "x", key: "x", string: {}, prompt: "What?" }] } },
      "refused_by_service",
      /agent/,
    ],
    [
      "an output's command that fails",
      { report: { outputs: [output("x", "exit 4", { string: {} })] } },
      "command_failed",
      /the command of the output x ended with exit status 4/,
    ],
    [
      "an output of 65,537 bytes",
      { report: { outputs: [output("x", "head -c 65537 /dev/zero", { string: {} })] } },
      "output_too_long",
      /printed more than 16386 bytes/,
    ],
    [
      "an output that its schema refuses",
      { report: { outputs: [output("x", "echo many", { integer: {} })] } },
      "output_invalid",
      /x/,
    ],
    [
      "an output that its acceptance criteria refuse",
      { report: { outputs: [output("x", "echo 79", { integer: {}, acceptanceCriteria: "this >= 80" })] } },
      "output_invalid",
      /^output x is not accepted: the acceptance criterion is false$/,
    ],
  ])("fails at %s", async (_, step, reason, message) => {
    const action = await ranOnce({ steps: [step, task("touch after")] });
    expect(phases(action)).toEqual(["FAILED", "CANCELLED"]);
    const [{ error }] = action.status.stepStatuses;
    expect([error.reason, error.message]).toEqual([reason, expect.stringMatching(message)]);
  });

  test("fails before its first step when its repository cannot be cloned", async () => {
    const action = await ranOnce({ repository: () => `${repository.url}-absent` });
    expect([phases(action), reasons(action.status.failures)]).toEqual([
      ["CANCELLED"],
      ["repository_not_found"],
    ]);
  });
});

describe("the limits of an action", () => {
  /** A command that leaves a grandchild in the background, which ignores what can be ignored. */
  const FORKING = "sh -c 'trap \"\" TERM; echo child $$; while :; do sleep 1; done' & echo begun; wait";
  const childOf = (log: string) => Number(/child (\d+)/.exec(log)?.[1]);
  const runs = (processId: number) => {
    const file = `/proc/${processId}/stat`;
    // Z: it has ended, and nobody has asked after it.
    return existsSync(file) && !/^\d+ \(.*\) Z/.test(readFileSync(file, "utf8"));
  };

  test("cancelling it ends everything that its step started", async () => {
    const run = await start({ steps: [task(FORKING), task("touch after")] });
    const [{ id }] = await run.actions();
    const log = await readLog(server, id, { until: (text) => /child \d+\n/.test(text) });
    const child = childOf(log);
    expect(runs(child)).toBe(true);
    await run.cancel();
    const [action] = await over(run);
    expect([action.status.phase, phases(action)]).toEqual([
      "WORKFLOW_EXECUTION_ACTION_PHASE_STOPPED",
      ["CANCELLED", "CANCELLED"],
    ]);
    expect(runs(child)).toBe(false);
    await runner.untilLogged("work ended", { action: id, outcome: "stopped" });
    expect(readdirSync(join(runner.stateDir, "workspaces"))).not.toContain(action.status.environmentId);
  });

  test("cancelling it ends it at once, and not with the next renewal of its lease", async () => {
    let fastestMs = Number.POSITIVE_INFINITY;
    // The machine may stall during one of them, and not during each.
    for (let attempt = 0; fastestMs > 2_500 && attempt < 10; attempt++) {
      const run = await start({ steps: [task("echo begun; sleep 600")] });
      const [{ id }] = await run.actions();
      await readLog(server, id, { until: (text) => text.includes("begun") });
      const cancelledAt = performance.now();
      await run.cancel();
      await over(run);
      fastestMs = Math.min(fastestMs, performance.now() - cancelledAt);
    }
    expect(fastestMs).toBeLessThan(2_500);
  });

  test("its time ends it, with all that its step started", async () => {
    const action = await ranOnce({ steps: [task("sleep 60 & echo child $!; wait")], maxTime: "6s" });
    expect([phases(action), reasons(action.status.failures)]).toEqual([["FAILED"], ["max_time_exceeded"]]);
    expect(runs(childOf(await readLog(server, action.id)))).toBe(false);
  });

  test("a step that prints without end is ended, and of what it printed both ends are kept", async () => {
    const action = await ranOnce({ steps: [task("echo first; yes; echo never")] });
    expect(reasons(action.status.failures)).toEqual(["output_limit_exceeded"]);
    const log = await readLog(server, action.id);
    expect(log).toMatch(/^first\ny\ny\n/);
    expect(log).not.toContain("never");
    expect(log.length).toBeLessThan(1_100_000);
  });
});

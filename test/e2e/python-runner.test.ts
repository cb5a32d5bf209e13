import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect } from "@jest/globals";
import { post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { bareRepository } from "../harness/git-repository.ts";
import { ROOT, terminalEnvironment, testWith } from "../harness/program.ts";
import { newExchangeToken } from "../harness/runner-process.ts";
import { type ReachableServer, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { startExecution, task } from "../harness/started-execution.ts";
import { until } from "../harness/until.ts";

let server: ReachableServer;
let runner: ChildProcess | undefined;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(async () => {
  if (runner && runner.exitCode === null) {
    runner.kill("SIGKILL");
    await once(runner, "exit");
  }
  await stopAll();
});

/** Starts the example once, and waits until it has registered. */
async function startExample(): Promise<void> {
  if (runner) return;
  const { exchangeToken } = await newExchangeToken(server, "In Python");
  const env = { ...terminalEnvironment(), EXCHANGE_TOKEN: exchangeToken, GIT_ALLOW_PROTOCOL: "file" };
  runner = spawn("python3", ["examples/python/runner.py", server.url], {
    cwd: ROOT,
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const { stdout } = runner;
  if (!stdout) throw new Error("the example has no output");
  const lines = createInterface({ input: stdout });
  const [line] = await Promise.race([
    once(lines, "line"),
    once(runner, "exit").then(([code]) => Promise.reject(new Error(`the example ended with ${code}`))),
  ]);
  expect(line).toBe("ready");
}

/** Starts a workflow over a repository of its own and waits for its end. */
async function carriedOut(steps: readonly object[], files = { "hello.txt": "one\ntwo\n" }) {
  await startExample();
  const { url } = bareRepository(temporaryFolder(), files);
  const run = await startExecution(server, { steps, repository: () => url });
  const execution = await until(run.execution, ({ status }) => status.phase.endsWith("_COMPLETED"));
  const [action] = await run.actions();
  return { ...run, execution, action };
}

const integer = (key: string, command: string) => ({ key, title: key, integer: { min: 0 }, command });
const withPython = testWith("python3", "git");

describe("the runner in Python", () => {
  withPython("clones a repository, runs a task and reports what a command counts in it", async () => {
    const { execution, action, executionId, call } = await carriedOut([
      task("cat hello.txt; echo three >> hello.txt; echo $EXCHANGE_TOKEN"),
      { report: { outputs: [integer("lines", "wc -l < hello.txt"), integer("files", "ls | wc -l")] } },
    ]);
    expect(execution.status).toMatchObject({ doneActionCount: 1, failedActionCount: 0 });
    const { outputs } = await call("ListWorkflowExecutionOutputs", {
      filter: { workflowExecutionIds: [executionId] },
    });
    expect(outputs[0]).toMatchObject({ values: { lines: { intValue: "3" }, files: { intValue: "1" } } });
    const request = { workflowExecutionActionId: action.id };
    const printed = await succeeded(post(server, "WorkflowService/StreamActionLogs", request));
    expect(Buffer.from(printed.data, "base64").toString()).toBe("one\ntwo\n\n");
  });

  withPython("fails a step whose command fails, and takes the next work all the same", async () => {
    const failed = await carriedOut([task("echo no; exit 3"), task("true")]);
    expect(failed.execution.status.failedActionCount).toBe(1);
    expect(failed.action.status.failures).toMatchObject([{ message: "sh ended with 3" }]);
    const { execution } = await carriedOut([task("true")]);
    expect(execution.status.doneActionCount).toBe(1);
  });

  withPython("ends what it runs when the work is cancelled, and finishes", async () => {
    await startExample();
    const pidFile = join(temporaryFolder(), "pid");
    const steps = [task(`echo $$ > ${pidFile}.new; mv ${pidFile}.new ${pidFile}; exec sleep 300`)];
    const { url } = bareRepository(temporaryFolder(), { "hello.txt": "" });
    const run = await startExecution(server, { steps, repository: () => url });
    const pid = Number(
      await until(() => (existsSync(pidFile) ? readFileSync(pidFile, "utf8") : ""), Boolean),
    );
    await run.cancel();
    await until(run.execution, ({ status }) => status.phase.endsWith("_STOPPED"));
    // It is over once its parent has taken note of its end.
    await until(
      () => isThere(pid),
      (there) => !there,
    );
  });
});

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

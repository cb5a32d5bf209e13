/**
 * Lists the files of src/ of which a function runs for one request, from the
 * socket to the row: `node scripts/trace.ts create` for a CreateProject, `action`
 * for an action of a workflow from StartWorkflow to its end. What jobs do at
 * their intervals is left out.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import type { Terminal } from "../src/commands/definitions/command-line.ts";
import { serve } from "../src/commands/serve.ts";
import { readConfig } from "../src/config/config.ts";

const root = join(import.meta.dirname, "..");
const [what = "create"] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "chartroom-trace-"));
const printed: string[] = [];
const terminal: Terminal = {
  env: { ...process.env, XDG_STATE_HOME: join(folder, "state") },
  print: (text) => void printed.push(text),
  printError: (text) => void process.stderr.write(text),
  input: process.stdin,
  output: process.stderr,
  figures: process,
  nodePath: process.execPath,
  isRoot: process.getuid?.() === 0,
  signalGroup: (groupId, signal) => void process.kill(-groupId, signal),
  setExitCode: () => undefined,
};
const flags = {
  port: "0",
  dataDir: join(folder, "data"),
  logLevel: "error",
  localRunner: what === "action",
  allowFileRemotes: true,
};
const session = new Session();
session.connect();
await session.post("Profiler.enable");
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });

const running = await serve(readConfig(flags, terminal.env), terminal);
try {
  const text = printed.join("");
  const [, url = ""] = /ready at (\S+)/.exec(text) ?? [];
  const [, token = ""] = /\n {2}(\S{30,})\n/.exec(text) ?? [];
  const call = async (operation: string, body: object) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const res = await fetch(`${url}/api/service.v1.${operation}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
    });
    const answer = await res.json();
    if (!res.ok) throw new Error(`${operation}: ${JSON.stringify(answer)}`);
    return answer;
  };
  const trace = what === "action" ? await traceAction(call) : await traceCreate(call);
  process.stdout.write(`${trace.join("\n")}\n${trace.length} files\n`);
} finally {
  await running.stop();
  rmSync(folder, { recursive: true, force: true });
}
process.exit();

type Call = (operation: string, body: object) => Promise<Record<string, never>>;

async function traceCreate(call: Call): Promise<string[]> {
  const project = (name: string) => ({
    initializer: { specs: [{ git: { remoteUri: `https://git.example.org/team/${name}.git` } }] },
  });
  await call("ProjectService/CreateProject", project("first"));
  await filesRun();
  await call("ProjectService/CreateProject", project("second"));
  return filesRun();
}

async function traceAction(call: Call): Promise<string[]> {
  const repository = join(folder, "repository");
  const git = (...args: string[]) => execFileSync("git", args, { stdio: "ignore" });
  git("init", "-q", repository);
  git(
    "-C",
    repository,
    "-c",
    "user.name=t",
    "-c",
    "user.email=t@localhost",
    "commit",
    "-q",
    "--allow-empty",
    "-m",
    "first",
  );
  const { workflow } = await call("WorkflowService/CreateWorkflow", {
    name: "traced",
    triggers: [
      {
        manual: {},
        context: { repositories: { repositoryUrls: { repoUrls: [pathToFileURL(repository).href] } } },
      },
    ],
    action: { limits: { maxParallel: 1, maxTotal: 1 }, steps: [{ task: { command: "true" } }] },
  });
  const { id: workflowId } = workflow as unknown as { id: string };
  const run = async () => {
    const { workflowExecution } = await call("WorkflowService/StartWorkflow", { workflowId });
    const { id: workflowExecutionId } = workflowExecution as unknown as { id: string };
    for (;;) {
      const got = await call("WorkflowService/GetWorkflowExecution", { workflowExecutionId });
      const { status } = got.workflowExecution as unknown as {
        status: { phase: string; failures: unknown; failedActionCount: number };
      };
      if (status.failedActionCount > 0) throw new Error(JSON.stringify(status));
      if (/COMPLETED|STOPPED/.test(status.phase)) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  await run();
  await filesRun();
  await run();
  return filesRun();
}

/** Returns the files of src/ of which a function ran since the last call. */
async function filesRun(): Promise<string[]> {
  const { result } = await session.post("Profiler.takePreciseCoverage");
  const sources = pathToFileURL(join(root, "src")).href;
  return result
    .filter(({ url, functions }) => {
      if (!url.startsWith(sources)) return false;
      return functions.some(({ functionName, ranges }) => functionName !== "" && (ranges[0]?.count ?? 0) > 0);
    })
    .map(({ url }) => relative(root, new URL(url).pathname))
    .filter((file) => !file.startsWith("src/jobs/"))
    .sort();
}

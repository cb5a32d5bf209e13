import { execFileSync } from "node:child_process";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { caller, until } from "./sample.ts";

/** A picture that README.md or a page about the console shows. */
export interface FrontPicture {
  readonly name: string;
  readonly path: string;
  readonly colorScheme: "light" | "dark";
  readonly width: number;
  readonly height: number;
  /** Text in sight once the page is whole. */
  readonly shows: string;
}

const WORKFLOW = "Update licence headers";
const PARTS = ["billing", "search", "web", "auth", "docs", "mail"] as const;
const REPOSITORIES = 30;
/** Of so many repositories, one fails. */
const FAILS_EACH = 7;

/** Makes what the pictures show in addition to the sample: a workflow over thirty repositories, some of which fail. */
export async function completeFront(page: Page): Promise<readonly FrontPicture[]> {
  const call = caller(page);
  const { projects } = await call("ProjectService/ListProjects", { filter: { search: "hello" } });
  const hello = projects[0].initializer.specs[0].git.remoteUri as string;
  const folder = dirname(fileURLToPath(hello));
  const repoUrls = Array.from({ length: REPOSITORIES }, (_, at) => {
    const name = `${PARTS[at % PARTS.length]}-${at}`;
    makeRepository(fileURLToPath(hello), join(folder, name), at % FAILS_EACH === 3);
    return `file://${join(folder, name)}`;
  });
  const { workflow } = await call("WorkflowService/CreateWorkflow", {
    name: WORKFLOW,
    description: "Keeps the headers of all files at the year, and tests what changed.",
    triggers: [{ manual: {}, context: { repositories: { repositoryUrls: { repoUrls } } } }],
    action: {
      limits: { maxParallel: 10, maxTotal: 100 },
      steps: [
        { task: { command: "sed -i '1i Copyright 2026' hello.txt\ngit diff --stat" } },
        {
          task: {
            command:
              "echo running 12 tests\nif [ -e main.c ]; then echo 'FAILED: the header of main.c is of 2019'; exit 2; fi",
          },
        },
        {
          report: {
            outputs: [{ key: "lines", title: "Lines", integer: {}, command: "wc -l < hello.txt" }],
          },
        },
      ],
    },
  });
  const started = await call("WorkflowService/StartWorkflow", { workflowId: workflow.id });
  const executionId = started.workflowExecution.id as string;
  await until(
    async () =>
      (await call("WorkflowService/GetWorkflowExecution", { workflowExecutionId: executionId }))
        .workflowExecution.status.phase,
    "WORKFLOW_EXECUTION_PHASE_COMPLETED",
  );
  const { agentExecutions } = await call("AgentService/ListAgentExecutions", {});
  const run = (name: string) =>
    `/agents/${agentExecutions.find(({ metadata }: { metadata: { name: string } }) => metadata.name === name).id}`;
  const wide = { width: 1280, height: 800 };
  const asks = { path: run("Sample: ask first"), shows: "make deploy" };
  return [
    { name: "home-dark", path: "/", colorScheme: "dark", ...wide, shows: "make deploy" },
    { name: "run-light", ...asks, colorScheme: "light", ...wide },
    { name: "run-narrow", ...asks, colorScheme: "light", width: 380, height: 760 },
    {
      name: "changes-dark",
      path: `${run("Sample: greet")}?tab=changes&diff=split`,
      ...{ colorScheme: "dark", ...wide, shows: "Good morning" },
    },
    {
      name: "policies-light",
      path: "/organization?tab=policies",
      ...{ colorScheme: "light", ...wide, shows: "Longest idle time, in hours" },
    },
    {
      name: "execution-light",
      path: `/executions/${executionId}`,
      ...{ colorScheme: "light", ...wide, height: 900, shows: "FAILED: the header" },
    },
    {
      name: "workflow-dark",
      path: `/workflows/${workflow.id}?tab=definition`,
      ...{ colorScheme: "dark", ...wide, height: 900, shows: "Step 2" },
    },
  ];
}

/** Clones a repository; with `fails`, it gets a file that the workflow's test does not like. */
function makeRepository(from: string, to: string, fails: boolean): void {
  if (existsSync(to)) rmSync(to, { recursive: true });
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=Sample", "-c", "user.email=sample@localhost", ...args]);
  git("clone", "--quiet", from, to);
  if (!fails) return;
  writeFileSync(join(to, "main.c"), "/* Copyright 2019 */\n");
  git("-C", to, "add", ".");
  git("-C", to, "-c", "commit.gpgsign=false", "commit", "--quiet", "--message", "Add the program");
}

import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { maxConcurrent, recordedTransitions } from "../harness/action-transitions.ts";
import { type Answer, post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { createGate, type Gate } from "../harness/gate.ts";
import { type HostedRunner, startRegisteredHostedRunner, stopRunners } from "../harness/runner-process.ts";
import { type ScmHost, startScmHost } from "../harness/scm-host.ts";
import { type ServedRepository, serveRepositories } from "../harness/served-repository.ts";
import { type ReachableServer, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { type StartedExecution, startExecution, task } from "../harness/started-execution.ts";
import { until } from "../harness/until.ts";

/** So long may an execution take on a machine that does other things, too. */
const LONG_MS = 600_000;
/** Nothing in it may be read as program text. */
const WORD = `it's "$(id)" \`id\` * {{ .ID }}; rm -rf x\nand a second line`;
const LINES = (12 * 13) / 2;

const names = (prefix: string) => Array.from({ length: 12 }, (_, index) => `${prefix}-${index + 1}`);
const NAME = '"$(cat name.txt)"';

let folder: string;
let gate: Gate;
beforeAll(() => {
  folder = temporaryFolder();
  gate = createGate();
});
afterAll(async () => {
  await stopRunners();
  await stopAll();
});

/** Lines that commands write when they begin (+) and when they end (-). */
const journal = () => readFileSync(join(folder, "journal"), "utf8").trim().split("\n");
const broken = (name: string) => join(folder, `broken-${name}`);

/** Edits a file, opens a pull request and reports how many lines the file has, for three repositories at a time. */
function startEditing(
  server: ReachableServer,
  repositories: readonly ServedRepository[],
): Promise<StartedExecution> {
  const edit = [
    `echo + ${NAME} >> '${folder}/journal'`,
    gate.wait(NAME),
    `test ! -e '${broken("")}'${NAME} || exit 7`,
    "printf %s {{ .Parameters.word }} > word.txt",
    "sed -i s/line/edited/ a.txt",
    `echo - ${NAME} >> '${folder}/journal'`,
  ];
  const lines = { title: "Lines", key: "lines", integer: { min: 1 }, command: "grep -c edited a.txt" };
  const sum = `total=0
for lines in $(grep -o '"intValue": *"[0-9]*"' "$CHARTROOM_OUTPUTS" | grep -o '[0-9]*'); do
  total=$((total + lines))
done
echo $total`;
  const { word, subject } = { word: WORD, subject: "edits" };
  return startExecution(server, {
    actions: repositories.length,
    maxParallel: 3,
    repository: (index) => repositories[index]?.cloneUrl ?? "",
    parameters: { word, subject },
    steps: [
      task(edit.join("\n")),
      {
        pullRequest: { title: "Make {{ .Parameters.subject }}", branch: "tidy/{{.Parameters.subject}}" },
      },
      { report: { outputs: [lines] } },
    ],
    report: { outputs: [{ title: "Sum", key: "sum", integer: {}, command: sum }] },
  });
}

/** Waits for an execution's end; the most actions of it that were seen running. */
async function watched(run: StartedExecution): Promise<number> {
  let most = 0;
  const ended = ({ status }: Answer["body"]) => {
    most = Math.max(most, status.runningActionCount);
    return /COMPLETED|STOPPED/.test(status.phase);
  };
  await until(run.execution, ended, LONG_MS);
  return most;
}

const short = (phase: string) => phase.replace(/^.*PHASE_/, "");
const phases = (actions: readonly Answer["body"][]) => actions.map(({ status }) => short(status.phase));
const reasons = (actions: readonly Answer["body"][], of: "failures" | "warnings") =>
  actions.map(({ status }) => status[of].map(({ reason }: { reason: string }) => reason).join(" "));

/** Phase and counts of an execution. */
async function countsOf(run: StartedExecution): Promise<string> {
  const { status } = await run.execution();
  const counts = ["pending", "running", "failed", "done", "stopped"].map((name) => [
    name,
    status[`${name}ActionCount`],
  ]);
  const parts = counts.filter(([, count]) => count > 0).map(([name, count]) => `${count} ${name}`);
  return [short(status.phase), ...parts].join(", ");
}

/** The outputs of an execution by the name of their action. */
async function outputs(run: StartedExecution): Promise<Record<string, number>> {
  const filter = { workflowExecutionIds: [run.executionId] };
  const listed = (await run.call("ListWorkflowExecutionOutputs", { filter })).outputs;
  const named = new Map((await run.actions()).map(({ id, metadata }) => [id, metadata.actionName]));
  return Object.fromEntries(
    listed.map(({ actionId, values }: Answer["body"]) => [
      named.get(actionId),
      Number((values.lines ?? values.sum).intValue),
    ]),
  );
}

/** The most actions of an execution that ran at the same time, by the audit trail. */
async function recorded(server: ReachableServer, run: StartedExecution): Promise<number> {
  const ids = (await run.actions()).map(({ id }) => id);
  return maxConcurrent((await recordedTransitions(server)).filter(({ actionId }) => ids.includes(actionId)));
}

/** The most commands of these repositories that ran at the same time, by what they wrote. */
function overlap(repositories: readonly ServedRepository[]): number {
  const own = journal().filter((line) => repositories.some(({ name }) => line.slice(2) === name));
  let [now, most] = [0, 0];
  for (const line of own) {
    now += line.startsWith("+") ? 1 : -1;
    most = Math.max(most, now);
  }
  return most;
}

const edited = (repository: ServedRepository) =>
  expect([repository.read("tidy/edits", "word.txt"), repository.read("tidy/edits", "a.txt")]).toEqual([
    WORD,
    repository.read("main", "a.txt").replaceAll("line", "edited"),
  ]);

describe("a workflow over twelve repositories at a source-control host", () => {
  let server: ReachableServer;
  let host: ScmHost;
  let runner: HostedRunner;
  beforeAll(async () => {
    [server, host] = await Promise.all([startHostedServer(), startScmHost({ kind: "github" })]);
    const args = ["--allow-private-remotes", "--plain-http-hosts", host.host, "--slots", "8"];
    const { runnerId, ...started } = await startRegisteredHostedRunner(server, { args });
    runner = started;
    const source = "HOST_AUTHENTICATION_TOKEN_SOURCE_PAT";
    const token = { runnerId, host: host.host, token: host.token, source };
    await succeeded(post(server, "RunnerConfigurationService/CreateHostAuthenticationToken", token));
  });
  afterAll(() => host.stop());

  test(
    "edits each, opens a pull request in each and sums what they report, three at a time",
    async () => {
      const repositories = serveRepositories(names("all"), host);
      const run = await startEditing(server, repositories);
      const seen = await watched(run);
      expect(await countsOf(run)).toBe("COMPLETED, 13 done");
      expect([await recorded(server, run), seen <= 3, overlap(repositories) <= 3]).toEqual([3, true, true]);
      expect(await outputs(run)).toEqual({
        ...Object.fromEntries(repositories.map(({ name }, index) => [name, index + 1])),
        report: LINES,
      });
      const actions = (await run.actions()).slice(0, 12);
      const opened = repositories.map(({ path }) =>
        host.pullRequests().filter(({ repository }) => repository === path),
      );
      expect(opened.map((each) => each.map(({ title, branch, base }) => [title, branch, base]))).toEqual(
        repositories.map(() => [["Make edits", "tidy/edits", "main"]]),
      );
      expect(actions.map(({ status }) => status.stepStatuses[1].pullRequestUrl)).toEqual(
        opened.map(([pullRequest]) => pullRequest?.url),
      );
      for (const repository of repositories) edited(repository);
    },
    LONG_MS,
  );

  test(
    "is cancelled in the middle: what was done stays, what ran ends, and the rest never begins",
    async () => {
      const repositories = serveRepositories(names("cancelled"), host);
      const [done, running, rest] = [
        repositories.slice(0, 3),
        repositories.slice(3, 6),
        repositories.slice(6),
      ];
      gate.close(...[...running, ...rest].map(({ name }) => name));
      const run = await startEditing(server, repositories);
      await gate.reached(...running.map(({ name }) => name));
      expect(await countsOf(run)).toBe("RUNNING, 6 pending, 3 running, 3 done");
      await run.cancel();
      await watched(run);
      expect(await countsOf(run)).toBe("STOPPED, 3 done, 9 stopped");
      const actions = await run.actions();
      expect(phases(actions)).toEqual([...Array(3).fill("DONE"), ...Array(9).fill("STOPPED")]);
      expect(actions.map(({ metadata }) => metadata.startedAt !== undefined)).toEqual([
        ...Array(6).fill(true),
        ...Array(6).fill(false),
      ]);
      expect(rest.filter(({ name }) => gate.wasReached(name))).toEqual([]);
      for (const repository of done) edited(repository);
      expect([...running, ...rest].map((each) => each.find("tidy/edits"))).toEqual(Array(9).fill(undefined));
      const opened = host.pullRequests().map(({ repository }) => repository);
      expect(opened.filter((path) => path.includes("cancelled")).toSorted()).toEqual(
        done.map(({ path }) => path),
      );
      await until(
        () => readdirSync(join(runner.stateDir, "workspaces")),
        (left) => left.length === 0,
      );
      expect(Object.keys(await outputs(run))).toHaveLength(3);
    },
    LONG_MS,
  );
});

describe("a workflow over twelve folders, on the server's own runner", () => {
  test(
    "fails in two of them, and a retry does only those again",
    async () => {
      const args = ["--local-runner", "--allow-file-remotes", "--local-runner-slots", "8"];
      const server = await startHostedServer({ args });
      const repositories = serveRepositories(names("retried"));
      const failing = repositories.filter(({ name }) => ["retried-5", "retried-8"].includes(name));
      for (const { name } of failing) writeFileSync(broken(name), "");
      const first = await startEditing(server, repositories);
      const seen = await watched(first);
      expect(await countsOf(first)).toBe("COMPLETED, 2 failed, 11 done");
      expect([await recorded(server, first), seen <= 3]).toEqual([3, true]);
      const actions = (await first.actions()).slice(0, 12);
      expect(reasons(actions, "failures")).toEqual(
        repositories.map((each) => (failing.includes(each) ? "command_failed" : "")),
      );
      expect(reasons(actions, "warnings")).toEqual(
        repositories.map((each) => (failing.includes(each) ? "" : "pull_requests_unsupported")),
      );
      expect(failing.map((each) => each.find("tidy/edits"))).toEqual([undefined, undefined]);
      expect((await outputs(first)).report).toBe(LINES - 5 - 8);
      const before = repositories.map((each) => each.find("tidy/edits"));

      for (const { name } of failing) rmSync(broken(name));
      const again = await first.retry();
      await watched(again);
      expect(await countsOf(again)).toBe("COMPLETED, 3 done");
      expect((await again.execution()).metadata.retriedExecutionId).toBe(first.executionId);
      expect(await outputs(again)).toEqual({ "retried-5": 5, "retried-8": 8, report: LINES });
      for (const repository of repositories) edited(repository);
      const after = repositories.map((each) => each.find("tidy/edits"));
      expect(after.map((commit, index) => commit === before[index])).toEqual(
        repositories.map((each) => !failing.includes(each)),
      );
      expect(await countsOf(first)).toBe("COMPLETED, 2 failed, 11 done");
    },
    LONG_MS,
  );
});

import { builderOf } from "../../src/store/query-builder.ts";
import { type ActionTransition, recordedTransitions } from "../harness/action-transitions.ts";
import type { Answer } from "../harness/call.ts";
import { withServerData } from "../harness/member.ts";
import type { ServedRepository } from "../harness/served-repository.ts";
import type { TestServer } from "../harness/server.ts";
import type { HeldRun, World } from "./held-actions.ts";
import { BRANCH } from "./moments.ts";

/**
 * Returns the contradictions between an execution and its actions, in words; empty when there are
 * none. Holds at any time.
 */
export async function falseReports(world: World, { run, repositories }: HeldRun): Promise<string[]> {
  const actions = (await run.actions()).filter(({ metadata }) => !metadata.report);
  const problems = actions.flatMap((action, index) =>
    actionProblems(world, action, repositories[index] as ServedRepository),
  );
  const filter = { workflowExecutionIds: [run.executionId] };
  const { outputs } = await run.call("ListWorkflowExecutionOutputs", { filter });
  const withOutput = outputs.map(({ actionId }: Answer["body"]) => actionId);
  for (const { id, status } of actions) {
    if (isDone(status.stepStatuses[2]) && !withOutput.includes(id)) problems.push(`${id}: no output`);
  }
  return problems;
}

const isDone = ({ phase }: { phase: string }) => phase === "STEP_PHASE_DONE";

function actionProblems(
  { host, journal }: World,
  { id, status }: Answer["body"],
  { name, path, find }: ServedRepository,
): string[] {
  const problems: string[] = [];
  const [task, pullRequest] = status.stepStatuses;
  const opened = host.pullRequests().filter(({ repository }) => repository === path);
  if (opened.length > 1) problems.push(`${opened.length} pull requests`);
  if (isDone(task) && !journal().includes(`- ${id}`)) problems.push("the command did not end");
  if (isDone(pullRequest) && find(BRANCH) === undefined) problems.push("the branch is not there");
  if (isDone(pullRequest) && pullRequest.pullRequestUrl !== opened[0]?.url) {
    problems.push("the pull request is not there");
  }
  if (/DONE/.test(status.phase) && status.failures.length === 0 && !status.stepStatuses.every(isDone)) {
    problems.push("the action is done without its steps");
  }
  return problems.map((problem) => `${name}: ${problem}`);
}

/**
 * Returns the contradictions in the audit trail of finished executions: each action must have one
 * end, each attempt one start, and each lost attempt a warning.
 */
export async function recordProblems(
  server: Pick<TestServer, "url" | "token">,
  actions: readonly Answer["body"][],
): Promise<string[]> {
  const moves = await recordedTransitions(server);
  return actions.flatMap(({ id, status, metadata }) => {
    const own = moves.filter(({ actionId }) => actionId === id);
    const count = (fits: (move: ActionTransition) => boolean) => own.filter(fits).length;
    const begun = count(({ to }) => to === "RUNNING");
    const lost = count(({ from, to }) => from === "RUNNING" && to === "PENDING");
    const ends = count(({ to }) => to === "DONE" || to === "STOPPED");
    const warned = lostAttempts(status);
    const problems = [
      ...(own.some(({ from }, index) => from !== (own[index - 1]?.to ?? "PENDING"))
        ? ["moves do not join"]
        : []),
      ...(ends === 1 ? [] : [`${ends} ends`]),
      ...(begun === status.attempt ? [] : [`${begun} attempts begun, ${status.attempt} shown`]),
      ...(lost === status.attempt - 1 ? [] : [`${lost} of ${status.attempt} attempts begun again`]),
      ...(warned.every((attempt, index) => attempt === index + 1) ? [] : [`warnings of ${warned}`]),
      ...(warned.length >= lost ? [] : [`${lost} attempts lost, ${warned.length} warnings`]),
    ];
    return problems.map((problem) => `${metadata.actionName}: ${problem}`);
  });
}

/** Returns the numbers of the attempts that an action reports as lost. */
export function lostAttempts({ warnings }: Answer["body"]): number[] {
  return warnings
    .filter(({ reason }: { reason: string }) => reason === "attempt_lost")
    .map(({ meta }: Answer["body"]) => Number(meta.attempt));
}

/** Returns the counts of a finished execution that do not match its actions. */
export async function falseCounts({ run }: HeldRun): Promise<string[]> {
  const [{ status }, actions] = [await run.execution(), await run.actions()];
  const count = (phases: RegExp, isFailed = false) =>
    actions.filter((each) => phases.test(each.status.phase) && each.status.failures.length > 0 === isFailed)
      .length;
  const counts = {
    pending: count(/_PENDING$/),
    running: count(/_(RUNNING|STOPPING)$/),
    failed: count(/_DONE$/, true),
    done: count(/_DONE$/),
    stopped: count(/_STOPPED$/),
  };
  return Object.entries(counts)
    .filter(([name, actual]) => status[`${name}ActionCount`] !== actual)
    .map(([name, actual]) => `${status[`${name}ActionCount`]} ${name} are shown, there are ${actual}`);
}

/** Counts the remaining works, environments and their tokens; none of them may belong to finished actions. */
export function leftovers(server: TestServer): Promise<Record<string, number>> {
  return withServerData(server, async ({ reader }) => {
    const count = async (table: "work" | "environment") =>
      (await builderOf(reader).selectFrom(table).select("id").execute()).length;
    const tokens = await builderOf(reader)
      .selectFrom("token")
      .select("id")
      .where("kind", "=", "environment")
      .execute();
    return { work: await count("work"), environments: await count("environment"), tokens: tokens.length };
  });
}

import { type Answer, post } from "./call.ts";
import { succeeded } from "./fake-runner.ts";
import type { ReachableServer } from "./server.ts";

/** One transition of an action in the audit log; phases are without their common prefix. */
export interface ActionTransition {
  readonly actionId: string;
  /** PENDING for the first one. */
  readonly from: string;
  readonly to: string;
}

const PREFIX = "WORKFLOW_EXECUTION_ACTION_PHASE_";

/** Returns the transitions of all actions of the caller's organization, oldest first. */
export async function recordedTransitions(
  server: Pick<ReachableServer, "url" | "token">,
): Promise<ActionTransition[]> {
  const moves: ActionTransition[] = [];
  const filter = { subjectTypes: ["RESOURCE_TYPE_WORKFLOW_EXECUTION_ACTION"] };
  for (let token = ""; ; ) {
    const page = { filter, pagination: { pageSize: 100, token } };
    const { entries, pagination } = await succeeded(post(server, "EventService/ListAuditLogs", page));
    for (const entry of entries) moves.unshift(...movesOf(entry));
    token = pagination.nextToken;
    if (token === "") return moves;
  }
}

function movesOf({ subjectId, changes }: Answer["body"]): ActionTransition[] {
  const phase = (text: string) => JSON.parse(text).replace(PREFIX, "");
  return changes
    .filter(({ path }: { path: string }) => path === "status.phase")
    .map(({ before, after }: { before: string; after: string }) => ({
      actionId: subjectId,
      from: phase(before),
      to: phase(after),
    }));
}

/** Returns the highest number of actions that ran at the same time; a stopping one still runs. */
export function maxConcurrent(moves: readonly ActionTransition[]): number {
  const runs = (phase: string) => (phase === "RUNNING" || phase === "STOPPING" ? 1 : 0);
  let [now, most] = [0, 0];
  for (const { from, to } of moves) {
    now += runs(to) - runs(from);
    most = Math.max(most, now);
  }
  return most;
}

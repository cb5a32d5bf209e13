/** The work that made a commit, as its trailers name it. */
export interface CommitTrailers {
  readonly workflowId: string;
  readonly executionId: string;
  readonly actionId: string;
}

const TRAILERS: Readonly<Record<keyof CommitTrailers, string>> = {
  workflowId: "Chartroom-Workflow",
  executionId: "Chartroom-Execution",
  actionId: "Chartroom-Action",
};
const NAMES = Object.keys(TRAILERS) as (keyof CommitTrailers)[];

/** Returns a commit's message followed by the trailers. */
export function messageWithTrailers(message: string, trailers: CommitTrailers): string {
  const lines = NAMES.map((name) => `${TRAILERS[name]}: ${trailers[name]}`);
  return `${message.trimEnd()}\n\n${lines.join("\n")}\n`;
}

/** The git log format that prints each commit's trailers on one line for `parseTrailers`. */
export const TRAILERS_FORMAT = NAMES.map(
  (name) => `%(trailers:key=${TRAILERS[name]},valueonly,unfold,separator=%x2C)`,
).join("%x09");

/** Parses a line of trailers; a missing trailer becomes an empty string. */
export function parseTrailers(line: string): CommitTrailers {
  const [workflowId = "", executionId = "", actionId = ""] = line.split("\t");
  return { workflowId, executionId, actionId };
}

/**
 * Returns whether a push may remove these commits from a branch. It may only when they are the workflow's own, so
 * that nobody loses work. Either an earlier attempt of the same action made the newest one, or another execution of
 * the workflow made all of them. A push never replaces commits of another action of the same execution.
 *
 * @param lost newest first, at least one
 */
export function mayReplace(lost: readonly CommitTrailers[], own: CommitTrailers): boolean {
  if (lost[0]?.actionId === own.actionId) return true;
  return lost.every(
    ({ workflowId, executionId }) => workflowId === own.workflowId && executionId !== own.executionId,
  );
}

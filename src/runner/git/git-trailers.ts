/** The work that a commit was made by, as its last lines name it. */
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

/** Format with which git log prints the trailers of each commit as a line that `parseTrailers` parses. */
export const TRAILERS_FORMAT = NAMES.map(
  (name) => `%(trailers:key=${TRAILERS[name]},valueonly,unfold,separator=%x2C)`,
).join("%x09");

/** Parses a line of trailers; a missing one is an empty text. */
export function parseTrailers(line: string): CommitTrailers {
  const [workflowId = "", executionId = "", actionId = ""] = line.split("\t");
  return { workflowId, executionId, actionId };
}

/**
 * Returns whether a push may remove these commits from a branch: only when they
 * are the workflow's own, so that nobody's work is lost. Either the newest one
 * was made by an earlier attempt of the same action, or every one was made by
 * another execution of the workflow. Commits of another action of the same
 * execution are never replaced.
 *
 * @param lost newest first, at least one
 */
export function mayReplace(lost: readonly CommitTrailers[], own: CommitTrailers): boolean {
  if (lost[0]?.actionId === own.actionId) return true;
  return lost.every(
    ({ workflowId, executionId }) => workflowId === own.workflowId && executionId !== own.executionId,
  );
}

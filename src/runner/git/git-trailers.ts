/** By whom a commit was made, as its last lines say. */
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

/** A commit's message with the marks as its trailers. */
export function messageWithTrailers(message: string, marks: CommitTrailers): string {
  const lines = NAMES.map((name) => `${TRAILERS[name]}: ${marks[name]}`);
  return `${message.trimEnd()}\n\n${lines.join("\n")}\n`;
}

/** Has git log print the marks of each commit as a line that `readTrailers` reads. */
export const TRAILERS_FORMAT = NAMES.map(
  (name) => `%(trailers:key=${TRAILERS[name]},valueonly,unfold,separator=%x2C)`,
).join("%x09");

/** Empty texts for marks that are missing. */
export function readTrailers(line: string): CommitTrailers {
  const [workflowId = "", executionId = "", actionId = ""] = line.split("\t");
  return { workflowId, executionId, actionId };
}

/**
 * Whether the commits that a push would take from a branch are the workflow's
 * own, so that nobody's work is lost: the newest one was made by the same
 * action, in an earlier attempt; or every one was made by another execution of
 * the workflow. Another action of the same execution is nobody's to replace.
 *
 * @param lost newest first, at least one
 */
export function mayReplace(lost: readonly CommitTrailers[], own: CommitTrailers): boolean {
  if (lost[0]?.actionId === own.actionId) return true;
  return lost.every(
    ({ workflowId, executionId }) => workflowId === own.workflowId && executionId !== own.executionId,
  );
}

import { branchNameProblem } from "../../domain/source/git-branch-name.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import { type GitCall, git, tryGit } from "./git-run.ts";
import type { GitTools } from "./git-tools.ts";

/**
 * Points a new or existing branch at the checked-out commit and switches to it. Leaves files and index untouched.
 *
 * @throws WorkFailure branch_name_invalid
 */
export async function switchToBranch(tools: GitTools, call: GitCall, name: string): Promise<void> {
  requireBranchName(name);
  const head = await tryGit(tools, ["rev-parse", "--verify", "--quiet", "HEAD"], call);
  const branch = `refs/heads/${name}`;
  if (head.exit === 0) await git(tools, ["update-ref", branch, head.stdout.trim()], call);
  await git(tools, ["symbolic-ref", "HEAD", branch], call);
}

/**
 * Requires a branch name that git accepts.
 *
 * @throws WorkFailure branch_name_invalid
 */
export function requireBranchName(name: string): void {
  if (branchNameProblem(name) === undefined) return;
  throw new WorkFailure(
    "branch_name_invalid",
    `${JSON.stringify(name)} is no name of a branch: choose another`,
  );
}

import { type GitCall, git, tryGit } from "./git-run.ts";
import type { GitTools } from "./git-tools.ts";
import { WorkFailure } from "./work-failure.ts";

/**
 * Switches to a branch, which begins at the commit that is checked out whether
 * it was there before or not. What is not committed stays.
 *
 * @throws WorkFailure branch_name_invalid
 */
export async function switchToBranch(tools: GitTools, call: GitCall, name: string): Promise<void> {
  await refuseBranchName(tools, name, call);
  const isBorn = (await tryGit(tools, ["rev-parse", "--verify", "--quiet", "HEAD"], call)).exit === 0;
  await git(
    tools,
    isBorn ? ["checkout", "--quiet", "-B", name] : ["symbolic-ref", "HEAD", `refs/heads/${name}`],
    call,
  );
}

/** @throws WorkFailure branch_name_invalid for what git takes for no branch's name */
export async function refuseBranchName(tools: GitTools, name: string, call: GitCall): Promise<void> {
  // A dash at the start is an option to git, HEAD a place of its own.
  const isOdd = name.startsWith("-") || name === "HEAD";
  const check = () => tryGit(tools, ["check-ref-format", `refs/heads/${name}`], call);
  if (isOdd || name.includes("\0") || (await check()).exit !== 0) {
    throw new WorkFailure(
      "branch_name_invalid",
      `${JSON.stringify(name)} is no name of a branch: choose another`,
    );
  }
}

import { existsSync } from "node:fs";
import { join } from "node:path";
import type { WorkflowStep_PullRequest } from "#gen/service/v1/workflow_pb.js";
import { decidePush, pushRulesOf } from "../../domain/approval/push-rules.ts";
import { pathOfPushRule } from "../../domain/policy/push-policy.ts";
import { resolveCommitAuthor } from "../git/commit-author.ts";
import { resolveRemoteAccess } from "../git/git-access.ts";
import { switchToBranch } from "../git/git-branch.ts";
import type { Checkout } from "../git/git-checkout.ts";
import { commitAll, hasChanges } from "../git/git-commit.ts";
import { gitFolderOf } from "../git/git-folder.ts";
import { pushBranch } from "../git/git-push.ts";
import type { GitCall, GitRepository } from "../git/git-run.ts";
import { type RepositorySnapshot, withSnapshot } from "../git/git-snapshot.ts";
import { listRemoteRefs, type Refs, readFetchedRefs, refNameOf } from "../git/remote-refs.ts";
import { requireInPlace } from "../git/tree-path.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import type { StepResult, StepRun } from "./action-step.ts";
import { findPullRequestHost, openAtHost, type PullRequestHost } from "./pull-request-host.ts";

/**
 * Commits the changes in the first repository, pushes them to the branch and
 * opens a pull request. An attempt after a lost one updates the branch and the
 * pull request of that one. No changes, or a remote without pull requests, is a
 * warning.
 *
 * @throws WorkFailure
 */
export async function openPullRequest(run: StepRun, request: WorkflowStep_PullRequest): Promise<StepResult> {
  const [checkout] = run.checkouts;
  if (!checkout) throw new WorkFailure("no_repository", "there is no repository to open a pull request for");
  requireInPlace(run.workspace.tree, checkout.location);
  return withSnapshot(run.assignment.tools.git, run.folder, (snapshot) =>
    proposeChanges(run, request, checkout, snapshot),
  );
}

async function proposeChanges(
  run: StepRun,
  request: WorkflowStep_PullRequest,
  checkout: Checkout,
  snapshot: RepositorySnapshot,
): Promise<StepResult> {
  const { assignment, signal } = run;
  const { git } = assignment.tools;
  const call: GitCall = { repository: snapshot.repository, signal };
  if (!(await hasChanges(git, call, checkout.commit))) {
    const why = "nothing changed in the repository: no branch was pushed and no pull request opened";
    return { warnings: [new WorkFailure("nothing_to_commit", why)] };
  }
  // Before anything is pushed: a host that cannot be asked must not get half of the work.
  const host = await findPullRequestHost(assignment, checkout, signal);
  const base = await baseBranchOf(run, checkout, snapshot.repository);
  if (base === request.branch) {
    throw new WorkFailure(
      "branch_is_base",
      "the branch is the one that the changes are meant for: name another",
    );
  }
  requirePushAllowed(run, request, checkout);
  await push(run, request, checkout, snapshot);
  return host ? openAt(host, run, request, checkout, base) : { warnings: [pullRequestsUnsupported(request)] };
}

/**
 * Requires that the organization's rules allow a push to the branch: where they ask, people have approved a step before
 * this one.
 *
 * @throws WorkFailure push_denied
 */
function requirePushAllowed(
  { assignment, action, stepIndex }: StepRun,
  { branch }: WorkflowStep_PullRequest,
  { defaultBranch }: Checkout,
): void {
  const rules = pushRulesOf(assignment.work.policies?.agentPolicy);
  // What it may replace are commits of its own workflow, so that nobody loses any.
  const { decision, rule } = decidePush(rules, { branch, defaultBranch, isForced: false });
  if (rule === undefined || decision === "allow") return;
  const isApproved = action.steps.slice(0, stepIndex).some(({ step }) => step.case === "approval");
  if (decision === "ask" && isApproved) return;
  const path = pathOfPushRule(rule);
  const name = JSON.stringify(branch);
  throw new WorkFailure(
    "push_denied",
    decision === "ask"
      ? `the organization's policy (${path}) asks before pushes to ${name}: put an approval step before this one`
      : `the organization's policy (${path}) denies pushes to ${name}: name another branch`,
  );
}

async function push(
  { assignment, action, workspace, folder, signal }: StepRun,
  { title, description, branch }: WorkflowStep_PullRequest,
  { remoteUri, commit: base }: Checkout,
  { repository, borrowed: links, writeBack: handBack }: RepositorySnapshot,
): Promise<void> {
  const { tools, credentialFor } = assignment;
  const { workflowId, workflowExecutionId: executionId, actionId } = action;
  const trailers = { workflowId, executionId, actionId };
  const message = [title, description].filter((text) => text.trim() !== "").join("\n\n");
  const call: GitCall = { repository, signal };
  await switchToBranch(tools.git, call, branch);
  const author = resolveCommitAuthor(action.environment, tools.serverUrl);
  const commit = await commitAll(tools.git, call, { message, author, trailers });
  // Later steps continue from the commit.
  await handBack();
  await tools.isolation.handOver([workspace.tree]);
  const borrowed = [links, join(gitFolderOf(folder), "objects")];
  const target = { remoteUri, branch, credentialFor, signal, borrowed };
  await pushBranch(tools.git, { repository, commit, base, trailers, ...target });
}

async function openAt(
  host: PullRequestHost,
  { assignment, signal }: StepRun,
  { title, description, branch, draft }: WorkflowStep_PullRequest,
  { remoteUri }: Checkout,
  base: string | undefined,
): Promise<StepResult> {
  if (base === undefined) {
    throw new WorkFailure("base_unknown", "the remote has no default branch to open a pull request against");
  }
  const proposal = { remote: remoteUri, branch, base, title, description, draft };
  const { url } = await openAtHost(assignment.tools.scm, host, proposal, signal);
  return { pullRequestUrl: url };
}

/**
 * Returns the remote's branch that the changes are meant for: the one that they
 * started from, or that of the pull request which the work is about.
 */
async function baseBranchOf(
  { assignment, action, signal }: StepRun,
  { branch, defaultBranch, remoteUri }: Checkout,
  repository: GitRepository,
): Promise<string | undefined> {
  const { credentialFor, tools } = assignment;
  const names = [branch, action.pullRequest?.fromBranch, action.pullRequest?.toBranch].filter(Boolean);
  if (names.length === 0) return defaultBranch;
  let refs: Refs;
  if (existsSync(join(repository.gitFolder, "shallow"))) {
    // Other branches were left out.
    const access = await resolveRemoteAccess(tools.git, remoteUri, credentialFor);
    ({ refs } = (await listRemoteRefs(tools.git, access, signal)).remote);
  } else refs = await readFetchedRefs(tools.git, { repository, signal });
  return names.find((name = "") => refs.has(refNameOf("heads", name))) ?? defaultBranch;
}

function pullRequestsUnsupported({ branch }: WorkflowStep_PullRequest): WorkFailure {
  return new WorkFailure(
    "pull_requests_unsupported",
    `the remote knows no pull requests: the branch ${branch} was pushed to it`,
  );
}

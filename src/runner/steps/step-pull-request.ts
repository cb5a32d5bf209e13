import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { ActionWork } from "#gen/runner/v1/work_pb.js";
import type { WorkflowStep_PullRequest } from "#gen/service/v1/workflow_pb.js";
import { decidePush, pushRulesOf } from "../../domain/approval/push-rules.ts";
import { pathOfPushRule } from "../../domain/policy/push-policy.ts";
import { isWithheld } from "../../domain/policy/work-secrets.ts";
import { withoutDeceptiveText } from "../../domain/text/deceptive-text.ts";
import { stepTraceparent } from "../../domain/trace/trace-context.ts";
import { stepPushRequest } from "../../domain/workflow/execution/step-push.ts";
import { resolveCommitAuthor } from "../git/commit-author.ts";
import { resolveRemoteAccess } from "../git/git-access.ts";
import { switchToBranch } from "../git/git-branch.ts";
import type { Checkout } from "../git/git-checkout.ts";
import { commitAll, hasChanges } from "../git/git-commit.ts";
import { gitFolderOf } from "../git/git-folder.ts";
import { branchIsDefault, pushBranch } from "../git/git-push.ts";
import type { GitCall, GitRepository } from "../git/git-run.ts";
import { type RepositorySnapshot, withSnapshot } from "../git/git-snapshot.ts";
import type { CommitTrailers } from "../git/git-trailers.ts";
import { parseRemote } from "../git/remote-address.ts";
import { listRemoteRefs, type Refs, readFetchedRefs, refNameOf } from "../git/remote-refs.ts";
import { requireInPlace } from "../git/tree-path.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import type { StepResult, StepRun } from "./action-step.ts";
import { findPullRequestHost, openAtHost, type PullRequestHost } from "./pull-request-host.ts";

/**
 * Commits the changes in the first repository, pushes them to the branch and opens a pull request. If the organization's
 * rules require an approval of the push, asks for exactly this push and carries it out once it is approved. A retry after
 * a lost attempt updates the branch and pull request of that attempt. If nothing has changed or the remote has no pull
 * requests, the result has a warning.
 *
 * @throws WorkFailure
 */
export async function openPullRequest(run: StepRun, request: WorkflowStep_PullRequest): Promise<StepResult> {
  const [checkout] = run.checkouts;
  if (!checkout) throw new WorkFailure("no_repository", "there is no repository to open a pull request for");
  const { environment } = run.action;
  if (environment && isWithheld(environment)) throw begunByFork();
  requireInPlace(run.workspace.tree, checkout.location);
  return withSnapshot(run.assignment.tools.git, run.folder, (snapshot) =>
    proposeChanges(run, request, checkout, snapshot),
  );
}

/** Returns the failure of work whose commands may come from a fork, and so from anybody. */
function begunByFork(): WorkFailure {
  return new WorkFailure(
    "begun_by_fork",
    "the event of a pull request from a fork has begun the work, or may have: nothing of it is pushed",
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
  // Before the push: if the host is unreachable, the branch must not be pushed without its pull request.
  const host = await findPullRequestHost(assignment, checkout, signal);
  const base = await baseBranchOf(run, checkout, snapshot.repository);
  if (base === request.branch) {
    throw new WorkFailure(
      "branch_is_base",
      "the branch is the one that the changes are meant for: name another",
    );
  }
  if (host && base === undefined) {
    throw new WorkFailure("base_unknown", "the remote has no default branch to open a pull request against");
  }
  const mustAsk = rulePush(run, request, checkout);
  const commit = await commitChanges(run, request, snapshot);
  const place = parseRemote(checkout.remoteUri, assignment.tools.git.remotes);
  const asked = { remote: place.address, commit, base: (host && base) ?? "" };
  const digest = mustAsk ? digestOf(stepPushRequest(request, asked).requestJson) : "";
  // Compare now: a commit since the approval makes it a different push.
  if (digest !== "" && digest !== run.action.approvedPushDigest) return { asksToPush: asked };
  await push(run, request, checkout, snapshot, commit);
  const opened = host
    ? await openAt(host, run, request, checkout, asked.base)
    : { warnings: [pullRequestsUnsupported(request)] };
  return { ...opened, approvedPushDigest: digest };
}

/**
 * Returns whether the organization's rules require an approval of a push to the branch.
 *
 * @throws WorkFailure push_denied, branch_is_default
 */
function rulePush(
  { assignment }: StepRun,
  { title, description, branch }: WorkflowStep_PullRequest,
  { defaultBranch }: Checkout,
): boolean {
  const rules = pushRulesOf(assignment.work.policies?.agentPolicy);
  // Not forced: the push only replaces commits of its own workflow, so nobody loses commits.
  const { decision, rule } = decidePush(rules, { branch, defaultBranch, isForced: false });
  if (rule === undefined || decision === "allow") return false;
  if (decision === "deny") {
    throw new WorkFailure(
      "push_denied",
      `the organization's policy (${pathOfPushRule(rule)}) denies pushes to ${JSON.stringify(branch)}: name another branch`,
    );
  }
  // Do not ask people about a push that would fail, or about text that hides or reorders characters.
  if (branch === defaultBranch) throw branchIsDefault();
  const text = [title, description, branch].join("\n");
  if (withoutDeceptiveText(text) === text) return true;
  throw new WorkFailure(
    "text_deceptive",
    "title, description or branch have characters that hide or reorder what people read, who must approve the push: leave out U+202D, U+202E and tag characters",
  );
}

function digestOf(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}

/** Commits all changes on the branch, from which later steps continue. @returns the commit */
async function commitChanges(
  { assignment: { tools }, action, workspace, signal }: StepRun,
  { title, description, branch }: WorkflowStep_PullRequest,
  { repository, borrowed, writeBack: handBack }: RepositorySnapshot,
): Promise<string> {
  const message = [title, description].filter((text) => text.trim() !== "").join("\n\n");
  const call: GitCall = { repository, readable: [borrowed], signal };
  await switchToBranch(tools.git, call, branch);
  const author = resolveCommitAuthor(action.environment, tools.serverUrl);
  const commit = await commitAll(tools.git, call, { message, author, trailers: trailersOf(action) });
  await handBack();
  await tools.isolation.chown([workspace.tree]);
  return commit;
}

async function push(
  { assignment: { tools, credentialFor }, action, folder, signal }: StepRun,
  { branch }: WorkflowStep_PullRequest,
  { remoteUri, commit: base }: Checkout,
  { repository, borrowed: links }: RepositorySnapshot,
  commit: string,
): Promise<void> {
  const borrowed = [links, join(gitFolderOf(folder), "objects")];
  const target = { remoteUri, branch, credentialFor, signal, borrowed };
  await pushBranch(tools.git, { repository, commit, base, trailers: trailersOf(action), ...target });
}

function trailersOf({ workflowId, workflowExecutionId: executionId, actionId }: ActionWork): CommitTrailers {
  return { workflowId, executionId, actionId };
}

async function openAt(
  host: PullRequestHost,
  { assignment, action, stepIndex, signal }: StepRun,
  { title, description, branch, draft }: WorkflowStep_PullRequest,
  { remoteUri }: Checkout,
  base: string,
): Promise<StepResult> {
  const proposal = { remote: remoteUri, branch, base, title, description, draft };
  const { url } = await openAtHost(assignment.tools.scm, host, proposal, {
    signal,
    // Not the traceparent of the environment, which people may have set to anything else.
    traceparent: stepTraceparent(action, stepIndex),
  });
  return { pullRequestUrl: url };
}

/**
 * Returns the remote's branch to merge the changes into: the branch that was checked out, or else a branch of the pull
 * request that the work is about, or else the default branch.
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
    // A shallow clone lacks the other branches.
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

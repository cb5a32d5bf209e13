import { setTimeout as pause } from "node:timers/promises";
import { toJson } from "@bufbuild/protobuf";
import { ConnectError, createClient } from "@connectrpc/connect";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { ApprovalState } from "#gen/service/v1/approval_pb.js";
import {
  type EnvironmentPush,
  EnvironmentPushSchema,
  EnvironmentPush_Outcome as Outcome,
  type EnvironmentPush_Progress as Progress,
  EnvironmentPush_Stage as Stage,
  EnvironmentPush_State as State,
} from "#gen/service/v1/environment_push_pb.js";
import { EnvironmentService } from "#gen/service/v1/environment_service_pb.js";
import { ErrorDetailSchema } from "#gen/service/v1/error_reason_pb.js";
import {
  PullRequestChecks as Checks,
  type FollowedPullRequest,
  FollowedPullRequestSchema,
} from "#gen/service/v1/pull_request_pb.js";
import { createHttpTransport } from "../../../runner/protocol/connection.ts";
import { StartError } from "../../start-error.ts";
import { getApproval } from "../approval.ts";
import { call } from "../call.ts";
import { jsonText, printable } from "../printable.ts";
import type { ServerAccess } from "../server-access.ts";

/** Arguments of `chartroom run push`, and of `chartroom run pr`. */
export interface RunPush {
  readonly folder?: string;
  readonly branch?: string;
  readonly commitMessage?: string;
  readonly force?: boolean;
}

/** Further arguments of `chartroom run pr`. */
export interface RunPullRequest extends RunPush {
  readonly title?: string;
  readonly body?: string;
  readonly base?: string;
  readonly draft?: boolean;
}

/** The state of a push. */
export interface PushResult {
  readonly push: EnvironmentPush;
  readonly pullRequest?: FollowedPullRequest | undefined;
}

/** How to follow a push. */
export interface PushProgress {
  /** True to wait for people's decision. */
  readonly wait: boolean;
  /** Shows progress in a line that the next one replaces. */
  readonly tell: (line: string) => void;
}

/** Timeout of one call: within a minute the server answers that the push continues. */
const PUSH_MS = 300_000;
const STAGES: Readonly<Record<Stage, string>> = {
  [Stage.UNSPECIFIED]: "waiting for the runner",
  [Stage.LOOKING]: "looking at the files",
  [Stage.COPYING]: "copying and checking what is new",
  [Stage.SENDING]: "sending it",
  [Stage.TAKING]: "waiting for the remote",
};
/** The last result of a pull request's checks in words; empty when it has none. */
const CHECKS: Readonly<Record<Checks, string>> = {
  [Checks.UNSPECIFIED]: "",
  [Checks.NONE]: "",
  [Checks.PENDING]: "its checks go on",
  [Checks.FAILED]: "its checks have failed",
  [Checks.PASSED]: "its checks have passed",
};
/** Interval for polling the approval's state. */
const POLL_INTERVAL_MS = 2_000;

/** Pushes a run's changes. @throws StartError */
export async function pushRun(
  access: ServerAccess,
  run: string,
  { folder, ...push }: RunPush,
  progress: PushProgress,
): Promise<PushResult> {
  const environmentId = await environmentOf(access, run);
  const request = { environmentId, ...(folder !== undefined && { folder }), ...push };
  return decided(access, progress, async () => {
    progress.tell("pushing");
    const { push } = await call(
      access,
      (options) => environmentsOf(access).pushEnvironmentBranch(request, options),
      PUSH_MS,
    ).catch(rethrowPushError);
    return { push: present(push) };
  });
}

/** Pushes a run's changes and opens a pull request. @throws StartError */
export async function openPullRequestOfRun(
  access: ServerAccess,
  run: string,
  { folder, body, ...asked }: RunPullRequest,
  progress: PushProgress,
): Promise<PushResult> {
  const environmentId = await environmentOf(access, run);
  const request = {
    environmentId,
    ...(folder !== undefined && { folder }),
    ...(body !== undefined && { body }),
    ...asked,
  };
  return decided(access, progress, async () => {
    progress.tell("pushing, and opening a pull request");
    const { push, pullRequest } = await call(
      access,
      (options) => environmentsOf(access).openPullRequest(request, options),
      PUSH_MS,
    ).catch(rethrowPushError);
    return { push: present(push), pullRequest };
  });
}

/** Repeats a push in progress until it ends, and one that waits for an approval once that is given. */
async function decided(
  access: ServerAccess,
  { wait, tell }: PushProgress,
  push: () => Promise<PushResult>,
): Promise<PushResult> {
  for (;;) {
    const result = await push();
    const { state, approvalId, progress } = result.push;
    if (state === State.GOING_ON) {
      tell(progressText(progress));
      continue;
    }
    if (!wait || state !== State.WAITING_FOR_APPROVAL) return result;
    tell(`waiting for the approval ${approvalId}`);
    while ((await getApproval(access, approvalId)).state === ApprovalState.PENDING)
      await pause(POLL_INTERVAL_MS);
  }
}

function progressText(progress: Progress | undefined): string {
  const { stage = Stage.UNSPECIFIED, percent = 0 } = progress ?? {};
  return `${STAGES[stage] ?? "pushing"}${percent > 0 ? ` (${percent} %)` : ""}`;
}

/** Returns whether a push is complete; otherwise people must approve it first. */
export function isPushed({ push }: PushResult): boolean {
  return push.state === State.DONE;
}

/** Returns the result of a push, as text for people. */
export function pushText({ push, pullRequest }: PushResult): string {
  const { branch, remote, commit, approvalId } = push;
  const place = `${branch} of ${remote}`;
  if (push.state === State.WAITING_FOR_APPROVAL) {
    return printable(
      `nothing was pushed yet: ${place} waits for the approval ${approvalId}\n` +
        `chartroom approval show ${approvalId} shows it; run the same command again once it is given\n`,
    );
  }
  const done = {
    [Outcome.UNSPECIFIED]: "pushed",
    [Outcome.CREATED]: "created",
    [Outcome.ADVANCED]: "advanced",
    [Outcome.REPLACED]: "replaced",
    [Outcome.UNCHANGED]: "unchanged:",
  }[push.outcome];
  const opened = pullRequest?.pullRequest;
  const checks = CHECKS[pullRequest?.checks ?? Checks.UNSPECIFIED];
  const lines = [`${done} ${place} at ${commit}`, opened?.url, checks];
  return printable(lines.map((line) => (line ? `${line}\n` : "")).join(""));
}

/** Returns the result of a push as a JSON object. */
export function pushJson({ push, pullRequest }: PushResult): string {
  return jsonText({
    push: toJson(EnvironmentPushSchema, push),
    ...(pullRequest && { pullRequest: toJson(FollowedPullRequestSchema, pullRequest) }),
  });
}

/** Rethrows the error of a push. If a commit message is missing, names the flag that sets it. */
function rethrowPushError(error: unknown): never {
  if (!(error instanceof StartError)) throw error;
  const isUncommitted = ConnectError.from(error.cause)
    .findDetails(ErrorDetailSchema)
    .some(({ metadata }) => metadata.cause === "uncommitted_changes");
  if (!isUncommitted) throw error;
  throw new StartError(`${error.message}: --commit-message TEXT commits them, with you as the author`, {
    cause: error,
  });
}

/** @throws StartError for a run without an environment */
async function environmentOf(access: ServerAccess, agentExecutionId: string): Promise<string> {
  const agents = createClient(AgentService, createHttpTransport(access.server));
  const { agentExecution } = await call(access, (options) =>
    agents.getAgentExecution({ agentExecutionId }, options),
  );
  const used = agentExecution?.status?.usedEnvironments.at(-1)?.environmentId;
  if (used) return used;
  throw new StartError(`the run ${agentExecutionId} has no environment yet`);
}

function environmentsOf({ server }: ServerAccess) {
  return createClient(EnvironmentService, createHttpTransport(server));
}

function present(push: EnvironmentPush | undefined): EnvironmentPush {
  if (push) return push;
  throw new StartError("the server has answered without the push");
}

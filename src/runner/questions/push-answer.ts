import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  AnswerRequestRequest_BranchPushedSchema as BranchPushedSchema,
  EnvironmentQuestion_PushBranch as PushBranch,
} from "#gen/runner/v1/environment_question_pb.js";
import {
  EnvironmentPush_Outcome as Outcome,
  EnvironmentPush_Stage as Stage,
} from "#gen/service/v1/environment_push_pb.js";
import { Secrets } from "../../domain/secrets.ts";
import type { WatchedWorkspace } from "../changes/environment-report.ts";
import type { Checkout } from "../git/git-checkout.ts";
import { logFailure } from "../protocol/failure-report.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import { pushFromTree } from "../push/tree-push.ts";
import type { AnswerTools } from "./environment-answers.ts";
import { credentialOfQuestion } from "./question-credential.ts";
import type { TellProgress } from "./question-loop.ts";

const OUTCOMES = {
  created: Outcome.CREATED,
  advanced: Outcome.ADVANCED,
  replaced: Outcome.REPLACED,
  unchanged: Outcome.UNCHANGED,
} as const;

const STAGES = {
  looking: Stage.LOOKING,
  copying: Stage.COPYING,
  sending: Stage.SENDING,
  taking: Stage.TAKING,
} as const;

/** A question about a push. */
interface PushQuestion {
  /** Id of the question; the server returns the credential for it. */
  readonly id: string;
  readonly push: PushBranch;
  readonly signal: AbortSignal;
  readonly tell: TellProgress;
}

/** Pushes to a branch, or reports what would be pushed. Returns a failure as the answer. */
export async function respondToPush(
  { git, client, log }: Pick<AnswerTools, "git" | "client" | "log">,
  { environmentId, workspace, checkouts, secrets: atWork }: WatchedWorkspace,
  { id, push, signal, tell }: PushQuestion,
): Promise<MessageInitShape<typeof BranchPushedSchema>> {
  const secrets = new Secrets();
  try {
    const checkout = checkoutOf(checkouts, push.folder);
    const { decided, branch, commitMessage, authorName: name, authorEmail: email } = push;
    const credentialFor = credentialOfQuestion(client, id, secrets, signal);
    const report = await pushFromTree(git, workspace, checkout, {
      environmentId,
      branch,
      commitMessage,
      author: { name, email },
      credentialFor,
      decided,
      signal,
      onProgress(stage, line) {
        const percent = Math.min(100, Number(/ (\d{1,3})% \(/.exec(line)?.[1] ?? 0));
        tell({ stage: STAGES[stage], percent }, `${stage} ${line}`);
      },
    });
    const { outcome, ...known } = report;
    return { ...known, folder: checkout.location, ...(outcome && { outcome: OUTCOMES[outcome] }) };
  } catch (error) {
    signal.throwIfAborted();
    const failure = logFailure(log, { question: id, environment: environmentId }, error, {
      maskText: (text) => atWork.maskText(secrets.maskText(text)),
    });
    return { failure };
  }
}

function checkoutOf(checkouts: readonly Checkout[], folder: string | undefined): Checkout {
  const [first] = checkouts;
  if (!first) throw new WorkFailure("no_repository", "the environment has no repository to push from");
  const found = folder === undefined ? first : checkouts.find(({ location }) => location === folder);
  if (found) return found;
  const folders = checkouts.map(({ location }) => JSON.stringify(location)).join(", ");
  throw new WorkFailure(
    "no_repository",
    `there is no repository in ${JSON.stringify(folder)}: there are ${folders}`,
  );
}

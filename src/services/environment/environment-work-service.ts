import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { AnswerRequestRequest, WatchRequestsRequest } from "#gen/runner/v1/environment_question_pb.js";
import {
  type EnvironmentWorkService as Contract,
  type GetQuestionCredentialRequest,
  GetQuestionCredentialResponseSchema,
  type ReportEnvironmentChangesRequest,
  type ReportEnvironmentConnectionsRequest,
} from "#gen/runner/v1/environment_work_service_pb.js";
import { notFound } from "../../domain/error.ts";
import { requireHostOfWork } from "../../domain/runner/lease.ts";
import { addressesOf } from "../../domain/source/initializer-address.ts";
import { findEnvironment } from "../../store/environment/environment.ts";
import { findUnansweredQuestions } from "../../store/environment/environment-question.ts";
import { writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import type { StreamDependencies } from "../call/stream-dependencies.ts";
import { getExecutorAsCaller } from "../identity/executor.ts";
import { readHostCredential } from "../runner/host-token-secret.ts";
import { createLeaseStreams } from "../runner/lease-streams.ts";
import { reportEnvironmentChanges } from "./changes-report.ts";
import { reportEnvironmentConnections } from "./connections.ts";
import { answerRequest } from "./environment-question.ts";
import type { EnvironmentRuns } from "./environment-runs.ts";
import { watchRequests } from "./question-stream.ts";

/** The dependencies of the service. */
export interface EnvironmentWorkDependencies extends StreamDependencies {
  readonly runs: EnvironmentRuns;
}

/** Serves runners, which report on their environments. */
export class EnvironmentWorkService implements ServiceImpl<typeof Contract> {
  readonly #deps: EnvironmentWorkDependencies;
  readonly #streams = createLeaseStreams();

  constructor(deps: EnvironmentWorkDependencies) {
    this.#deps = deps;
  }

  reportEnvironmentChanges = (req: ReportEnvironmentChangesRequest, ctx: HandlerContext) =>
    reportEnvironmentChanges(this.#deps, req, ctx);

  reportEnvironmentConnections = (req: ReportEnvironmentConnectionsRequest, ctx: HandlerContext) =>
    reportEnvironmentConnections(this.#deps, req, ctx);

  watchRequests = (req: WatchRequestsRequest, ctx: HandlerContext) =>
    watchRequests(this.#deps, this.#streams, req, ctx);

  answerRequest = (req: AnswerRequestRequest, ctx: HandlerContext) => answerRequest(this.#deps, req, ctx);

  getQuestionCredential = (req: GetQuestionCredentialRequest, ctx: HandlerContext) =>
    getQuestionCredential(this.#deps, req, ctx);
}

/**
 * Returns the host credential for a runner's open question about a push or a remote: that of the subject that asks.
 * The host must be that of the remote, or one that the environment was made from. The audit log records each read.
 *
 * @throws DomainError NOT_FOUND for a question that is answered, over, for another runner or about something else,
 * and without such a credential; VALUE_UNUSABLE for another host; EXECUTOR_UNFIT
 */
function getQuestionCredential(
  { store, keys }: Pick<ServiceDependencies, "store" | "keys">,
  req: GetQuestionCredentialRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const host = req.host.toLowerCase();
    const runnerId = caller.subject.id;
    const open = await findUnansweredQuestions(tx.db, caller, runnerId, tx.now);
    const asked = open.find(({ id }) => id === req.questionId);
    const about = asked?.question;
    const subject =
      about?.case === "pushBranch" || about?.case === "readRemote" ? about.value.credentialOf : undefined;
    if (!asked || !subject) throw notFound("question");
    if (about?.case === "readRemote") requireHostOfWork(host, [about.value.remote]);
    else {
      const environment = await findEnvironment(tx.db, caller, asked.environmentId);
      if (environment?.metadata?.runnerId !== runnerId) throw notFound("environment");
      requireHostOfWork(host, addressesOf(environment.spec?.content?.initializer));
    }
    await getExecutorAsCaller(tx, caller, subject);
    const opened = await readHostCredential(tx, caller, keys, { runnerId, host, subject });
    if (!opened) throw notFound("host authentication token");
    const { token, secrets } = opened;
    return create(GetQuestionCredentialResponseSchema, {
      token: secrets.token,
      source: token.source,
      hostAuthenticationTokenId: token.id,
    });
  });
}

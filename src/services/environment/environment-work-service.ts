import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { AnswerRequestRequest, WatchRequestsRequest } from "#gen/runner/v1/environment_question_pb.js";
import type {
  EnvironmentWorkService as Contract,
  GetQuestionCredentialRequest,
  ReportEnvironmentChangesRequest,
} from "#gen/runner/v1/environment_work_service_pb.js";
import type { StreamDependencies } from "../call/stream-dependencies.ts";
import { createLeaseStreams } from "../runner/lease-streams.ts";
import { reportEnvironmentChanges } from "./changes-report.ts";
import { answerRequest } from "./environment-question.ts";
import type { EnvironmentRuns } from "./environment-runs.ts";
import { getQuestionCredential } from "./question-credential.ts";
import { watchRequests } from "./question-stream.ts";

/** The dependencies of the service. */
export interface EnvironmentWorkDependencies extends StreamDependencies {
  readonly runs: EnvironmentRuns;
}

/** The service with which runners tell of the environments that they keep. */
export class EnvironmentWorkService implements ServiceImpl<typeof Contract> {
  readonly #deps: EnvironmentWorkDependencies;
  readonly #streams = createLeaseStreams();

  constructor(deps: EnvironmentWorkDependencies) {
    this.#deps = deps;
  }

  reportEnvironmentChanges = (req: ReportEnvironmentChangesRequest, ctx: HandlerContext) =>
    reportEnvironmentChanges(this.#deps, req, ctx);

  watchRequests = (req: WatchRequestsRequest, ctx: HandlerContext) =>
    watchRequests(this.#deps, this.#streams, req, ctx);

  answerRequest = (req: AnswerRequestRequest, ctx: HandlerContext) => answerRequest(this.#deps, req, ctx);

  getQuestionCredential = (req: GetQuestionCredentialRequest, ctx: HandlerContext) =>
    getQuestionCredential(this.#deps, req, ctx);
}

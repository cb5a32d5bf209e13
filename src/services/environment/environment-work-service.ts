import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type {
  EnvironmentWorkService as Contract,
  ReportEnvironmentChangesRequest,
} from "#gen/runner/v1/environment_work_service_pb.js";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { reportEnvironmentChanges } from "./changes-report.ts";
import type { EnvironmentRuns } from "./environment-runs.ts";

/** The dependencies of the service. */
export interface EnvironmentWorkDependencies extends ServiceDependencies {
  readonly runs: EnvironmentRuns;
}

/** The service with which runners tell of the environments that they keep. */
export class EnvironmentWorkService implements ServiceImpl<typeof Contract> {
  readonly #deps: EnvironmentWorkDependencies;

  constructor(deps: EnvironmentWorkDependencies) {
    this.#deps = deps;
  }

  reportEnvironmentChanges = (req: ReportEnvironmentChangesRequest, ctx: HandlerContext) =>
    reportEnvironmentChanges(this.#deps, req, ctx);
}

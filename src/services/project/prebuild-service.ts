import { toJson } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { PrebuildMetadata_PrebuildTrigger as Trigger } from "#gen/service/v1/prebuild_pb.js";
import {
  type CancelPrebuildRequest,
  type PrebuildService as Contract,
  type CreatePrebuildRequest,
  type DeletePrebuildRequest,
  type GetPrebuildRequest,
  type ListPrebuildsRequest,
  type ListPrebuildsRequest_Filter,
  ListPrebuildsRequest_FilterSchema,
} from "#gen/service/v1/prebuild_service_pb.js";
import { notFound } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import type { Prebuild } from "../../domain/project/prebuild.ts";
import { prebuildMessage, statesOf } from "../../domain/project/prebuild-message.ts";
import { needsCancelling, requirePrebuildsKnown } from "../../domain/project/prebuild-request.ts";
import { mayStore, PREBUILD_SERVICE_LEVEL } from "../../store/feature-level.ts";
import { findPrebuild } from "../../store/project/prebuild.ts";
import { findPrebuildPage, type PrebuildListFilter } from "../../store/project/prebuild-list.ts";
import type { WriteTransaction } from "../../store/store.ts";
import { callerOf, writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { listPage } from "../call/page.ts";
import { getChangeableProject } from "./changeable-project.ts";
import { endPrebuild } from "./prebuild-end.ts";
import { startPrebuild } from "./prebuild-plan.ts";

/** Serves prebuilds, from which environments of a project start. */
export class PrebuildService implements ServiceImpl<typeof Contract> {
  readonly #deps: ServiceDependencies;

  constructor(deps: ServiceDependencies) {
    this.#deps = deps;
  }

  createPrebuild(req: CreatePrebuildRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const project = await getChangeableProject(tx, ctx, caller, req.projectId);
      requirePrebuildsKnown(mayStore(tx, PREBUILD_SERVICE_LEVEL));
      return { prebuild: messageFor(caller, await startPrebuild(tx, caller, project, req)) };
    });
  }

  async listPrebuilds({ filter, pagination }: ListPrebuildsRequest, ctx: HandlerContext) {
    const caller = callerOf(ctx);
    const { rows, page } = await listPage(this.#deps, caller, {
      operation: "ListPrebuilds",
      parts: [filter && toJson(ListPrebuildsRequest_FilterSchema, filter)],
      pagination,
      find: (db, after, limit) => findPrebuildPage(db, caller, listFilter(filter), after, limit),
    });
    return { ...page, prebuilds: rows.map((each) => messageFor(caller, each)) };
  }

  async getPrebuild({ prebuildId }: GetPrebuildRequest, ctx: HandlerContext) {
    const caller = callerOf(ctx);
    const prebuild = await findPrebuild(this.#deps.store.reader, caller, prebuildId);
    if (!prebuild) throw notFound("prebuild");
    return { prebuild: messageFor(caller, prebuild) };
  }

  cancelPrebuild({ prebuildId }: CancelPrebuildRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const before = await getChangeablePrebuild(tx, ctx, caller, prebuildId);
      const ending = { state: "cancelling" } as const;
      const after = needsCancelling(before) ? await endPrebuild(tx, caller, before, ending) : before;
      if (!after) throw new Error(`the prebuild ${prebuildId} was cancelled, and is gone`);
      return { prebuild: messageFor(caller, after) };
    });
  }

  deletePrebuild({ prebuildId }: DeletePrebuildRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const before = await getChangeablePrebuild(tx, ctx, caller, prebuildId);
      await endPrebuild(tx, caller, before, { state: "removing" });
      return {};
    });
  }
}

const messageFor = ({ organizationId }: Caller, prebuild: Prebuild) =>
  prebuildMessage(prebuild, organizationId);

/** Returns a prebuild of a project that the caller may change. */
async function getChangeablePrebuild(
  tx: WriteTransaction,
  ctx: HandlerContext,
  caller: Caller,
  prebuildId: string,
): Promise<Prebuild> {
  const prebuild = await findPrebuild(tx.db, caller, prebuildId);
  if (!prebuild) throw notFound("prebuild");
  await getChangeableProject(tx, ctx, caller, prebuild.projectId);
  requirePrebuildsKnown(mayStore(tx, PREBUILD_SERVICE_LEVEL));
  return prebuild;
}

function listFilter(filter: ListPrebuildsRequest_Filter | undefined): PrebuildListFilter {
  const { projectIds = [], phases = [], triggeredBy = [], creatorIds = [], executorIds = [] } = filter ?? {};
  const isListed = (trigger: Trigger) => triggeredBy.length === 0 || triggeredBy.includes(trigger);
  return {
    projectIds,
    states: phases.length > 0 ? statesOf(phases) : undefined,
    isManualListed: isListed(Trigger.MANUAL),
    isScheduledListed: isListed(Trigger.SCHEDULED),
    creatorIds,
    executorIds,
  };
}

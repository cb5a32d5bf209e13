import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import type {
  GetEnvironmentChangesRequest,
  GetEnvironmentDiffRequest,
} from "#gen/service/v1/environment_service_pb.js";
import { diffBaseOf, isOpenTo, requireReadable } from "../../domain/environment/environment-changes.ts";
import { notFound } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { findEnvironment } from "../../store/environment/environment.ts";
import {
  findChanges,
  findFileDiffPage,
  type StoredChanges,
} from "../../store/environment/environment-changes.ts";
import type { Reader } from "../../store/store.ts";
import { callerOf } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { type ListDependencies, listPage } from "../call/page.ts";
import type { EnvironmentRuns } from "./environment-runs.ts";

/** The dependencies of operations that show what is in environments. */
export interface ChangesDependencies extends ListDependencies {
  readonly runs: EnvironmentRuns;
}

/** Returns what has changed in an environment, as it was reported last. */
export async function getEnvironmentChanges(
  deps: Pick<ServiceDependencies, "store"> & { readonly runs: EnvironmentRuns },
  { environmentId }: GetEnvironmentChangesRequest,
  ctx: HandlerContext,
) {
  const { changes } = await getReadableChanges(deps, callerOf(ctx), environmentId);
  return { changes };
}

/** Returns one page of the files that differ. */
export async function getEnvironmentDiff(
  deps: ChangesDependencies,
  { environmentId, base: requested, pagination }: GetEnvironmentDiffRequest,
  ctx: HandlerContext,
) {
  const caller = callerOf(ctx);
  const base = diffBaseOf(requested);
  const { changes, diffs } = await getReadableChanges(deps, caller, environmentId);
  const diff = diffs.find((each) => each.base === base);
  if (!diff) throw notFound("diff of the environment");
  const { rows, page } = await listPage(deps, caller, {
    operation: "GetEnvironmentDiff",
    parts: [{ environmentId, base }],
    pagination,
    find: (db, after, limit) =>
      findFileDiffPage(db, caller, { environmentId, base, after: after?.key, limit }),
  });
  return {
    ...page,
    files: rows,
    digest: diff.digest,
    refreshedAt: changes.refreshedAt ?? timestampFromMs(0),
    filesLeftOut: diff.filesLeftOut,
  };
}

async function getReadableChanges(
  { store, runs }: Pick<ChangesDependencies, "store" | "runs">,
  caller: Caller,
  environmentId: string,
): Promise<StoredChanges> {
  const stored = await findChanges(store.reader, caller, environmentId);
  const creator = stored?.creator ?? (await findCreator(store.reader, caller, environmentId));
  if (!creator) throw notFound("environment");
  const mayRead = isOpenTo(caller, creator) || (await runs.mayReadAny(store.reader, caller, environmentId));
  requireReadable(mayRead);
  if (!stored) throw notFound("report of the environment");
  return stored;
}

async function findCreator(db: Reader, caller: Caller, environmentId: string) {
  return (await findEnvironment(db, caller, environmentId))?.metadata?.creator;
}

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import { EnvironmentQuestion_RefreshChangesSchema } from "#gen/runner/v1/environment_question_pb.js";
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
import { type ListDependencies, listPage } from "../call/page.ts";
import { askerOf, askRunner, type QuestionDependencies } from "./environment-question.ts";
import type { EnvironmentRuns } from "./environment-runs.ts";

/** The dependencies of operations that return the contents of environments. */
export interface ChangesDependencies extends ListDependencies {
  readonly runs: EnvironmentRuns;
}

/** Maximum time to inspect the working trees. */
export const MAX_ANSWER_WAIT_MS = 30_000;

/** Returns the changes in an environment from the last report or, on request, as its runner finds them now. */
export async function getEnvironmentChanges(
  deps: QuestionDependencies & { readonly runs: EnvironmentRuns },
  { environmentId, refresh }: GetEnvironmentChangesRequest,
  ctx: HandlerContext,
) {
  const caller = callerOf(ctx);
  if (refresh) {
    await requireReadableContent(deps, caller, environmentId);
    const question = {
      case: "refreshChanges",
      value: create(EnvironmentQuestion_RefreshChangesSchema),
    } as const;
    await askRunner(deps, askerOf(deps, ctx), {
      environmentId,
      question,
      answer: "changesRefreshed",
      waitMs: MAX_ANSWER_WAIT_MS,
    });
  }
  const { changes } = await getReadableChanges(deps, caller, environmentId);
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

type ReadDependencies = Pick<ChangesDependencies, "store" | "runs">;

async function getReadableChanges(
  deps: ReadDependencies,
  caller: Caller,
  environmentId: string,
): Promise<StoredChanges> {
  const stored = await requireReadableContent(deps, caller, environmentId);
  if (!stored) throw notFound("report of the environment");
  return stored;
}

/**
 * Requires that the caller may read the contents of an environment.
 *
 * @param knownCreator the creator of the environment, if it is already known
 * @returns the last report on the environment; undefined if there was none
 * @throws DomainError NOT_FOUND, PERMISSION_DENIED
 */
export async function requireReadableContent(
  { store, runs }: ReadDependencies,
  caller: Caller,
  environmentId: string,
  knownCreator?: StoredChanges["creator"],
): Promise<StoredChanges | undefined> {
  const stored = await findChanges(store.reader, caller, environmentId);
  const creator = stored?.creator ?? knownCreator ?? (await findCreator(store.reader, caller, environmentId));
  if (!creator) throw notFound("environment");
  const mayRead = isOpenTo(caller, creator) || (await runs.mayReadAny(store.reader, caller, environmentId));
  requireReadable(mayRead);
  return stored;
}

async function findCreator(db: Reader, caller: Caller, environmentId: string) {
  return (await findEnvironment(db, caller, environmentId))?.metadata?.creator;
}

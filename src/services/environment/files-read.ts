import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import {
  EnvironmentQuestion_DiffToCommitSchema,
  EnvironmentQuestion_ListFilesSchema,
  EnvironmentQuestion_ReadFileSchema,
} from "#gen/runner/v1/environment_question_pb.js";
import type {
  GetEnvironmentDiffRequest,
  ListEnvironmentFilesRequest,
  ReadEnvironmentFileRequest,
} from "#gen/service/v1/environment_service_pb.js";
import type { PaginationRequest } from "#gen/service/v1/pagination_pb.js";
import { pageSize, queryText } from "../../domain/page.ts";
import { callerOf } from "../call/call.ts";
import { type ChangesDependencies, MAX_ANSWER_WAIT_MS, requireReadableContent } from "./changes-read.ts";
import {
  type AnswerCase,
  askerOf,
  askRunner,
  type QuestionDependencies,
  type RunnerQuestion,
} from "./environment-question.ts";

/** Maximum time to read a file or folder. */
const READ_MS = 10_000;

/** The default of ReadEnvironmentFileRequest.max_bytes (contract), which is its maximum. */
const MAX_READ_BYTES = 1_048_576;

/** The dependencies of operations that ask runners for the contents of environments. */
export type FilesDependencies = ChangesDependencies & QuestionDependencies;

/** Returns one page of the files that differ from a commit; the runner compares them for this call. */
export async function getDiffToCommit(
  deps: FilesDependencies,
  { environmentId, commit, pagination }: GetEnvironmentDiffRequest,
  ctx: HandlerContext,
) {
  const page = pageOf(deps, ctx, "GetEnvironmentDiff", { environmentId, commit }, pagination);
  const value = create(EnvironmentQuestion_DiffToCommitSchema, { commit, ...page.part });
  const { files, hasMore, digest, filesLeftOut } = await askReadable(deps, ctx, {
    environmentId,
    question: { case: "diffToCommit", value },
    answer: "commitDiff",
    waitMs: MAX_ANSWER_WAIT_MS,
  });
  const refreshedAt = timestampFromMs(deps.now());
  return { ...page.after(files.length, hasMore), files, digest, refreshedAt, filesLeftOut };
}

/** Returns one page of the entries of a folder of an environment. */
export async function listEnvironmentFiles(
  deps: FilesDependencies,
  { environmentId, path, pagination }: ListEnvironmentFilesRequest,
  ctx: HandlerContext,
) {
  const page = pageOf(deps, ctx, "ListEnvironmentFiles", { environmentId, path }, pagination);
  const value = create(EnvironmentQuestion_ListFilesSchema, { path, ...page.part });
  const { files, hasMore, filesLeftOut } = await askReadable(deps, ctx, {
    environmentId,
    question: { case: "listFiles", value },
    answer: "fileList",
    waitMs: READ_MS,
  });
  return { ...page.after(page.part.limit, hasMore), files, filesLeftOut };
}

/** Returns a part of a file of an environment. */
export async function readEnvironmentFile(
  deps: FilesDependencies,
  { environmentId, path, offset, maxBytes: requested }: ReadEnvironmentFileRequest,
  ctx: HandlerContext,
) {
  const maxBytes = requested || MAX_READ_BYTES;
  const value = create(EnvironmentQuestion_ReadFileSchema, { path, offset, maxBytes });
  const { file, data, readBytes } = await askReadable(deps, ctx, {
    environmentId,
    question: { case: "readFile", value },
    answer: "filePart",
    waitMs: READ_MS,
  });
  const end = offset + BigInt(readBytes);
  const hasMore = readBytes > 0 && end < (file?.sizeBytes ?? 0n);
  return { file, data, nextOffset: hasMore ? end : 0n };
}

/** Asks about an environment. Checks before and after that the caller may read it: rights may change while it waits. */
async function askReadable<Case extends AnswerCase>(
  deps: FilesDependencies,
  ctx: HandlerContext,
  asked: RunnerQuestion<Case>,
) {
  const caller = callerOf(ctx);
  await requireReadableContent(deps, caller, asked.environmentId);
  const answer = await askRunner(deps, askerOf(deps, ctx), asked);
  await requireReadableContent(deps, caller, asked.environmentId);
  return answer;
}

/** Returns the part of a list that a page covers, by offset, and the function that creates the token of the next page. */
function pageOf(
  { pageTokens }: FilesDependencies,
  ctx: HandlerContext,
  operation: string,
  asked: { readonly environmentId: string; readonly path?: string; readonly commit?: string },
  pagination: PaginationRequest | undefined,
) {
  const query = queryText(operation, callerOf(ctx).organizationId, asked);
  const offset = pageTokens.read(query, pagination?.token ?? "")?.key ?? 0;
  return {
    part: { offset, limit: pageSize(pagination) },
    after(elements: number, hasMore: boolean) {
      const position = { key: offset + elements, id: asked.environmentId };
      return { pagination: { nextToken: hasMore ? pageTokens.issue(query, position) : "" } };
    },
  };
}

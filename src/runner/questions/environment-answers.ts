import { createHash } from "node:crypto";
import type { Stats } from "node:fs";
import { basename } from "node:path";
import { create, toBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type {
  EnvironmentQuestion,
  EnvironmentQuestion_DiffToCommit,
  EnvironmentQuestion_ListFiles,
  EnvironmentQuestion_ReadFile,
} from "#gen/runner/v1/environment_question_pb.js";
import {
  type EnvironmentFile,
  type EnvironmentFileDiff,
  EnvironmentFileDiffSchema,
  EnvironmentFileSchema,
  EnvironmentFile_Kind as Kind,
} from "#gen/service/v1/environment_changes_pb.js";
import type { Secrets } from "../../domain/secrets.ts";
import { diffToCommit, type WatchedWorkspace } from "../changes/environment-report.ts";
import type { EnvironmentWatch } from "../changes/environment-watch.ts";
import type { RunnerTools } from "../protocol/assignment.ts";
import type { WorkClient } from "../protocol/connection.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import { environmentWorkspace } from "../steps/work-dirs.ts";
import { readCheckouts } from "../steps/workspace.ts";
import { respondToPush } from "./push-answer.ts";
import type { Answer, AnswerQuestion } from "./question-loop.ts";
import { respondToRead } from "./remote-answer.ts";
import { listTree, MAX_READ_BYTES, readTree } from "./tree-files.ts";

/** The contract's maximum number of files in an answer (AnswerRequestRequest.CommitDiff.files, FileList.files). */
const MAX_FILES = 100;
/** Maximum size of a diff's files in one answer, in bytes (contract, AnswerRequestRequest.CommitDiff.files). */
const MAX_DIFF_BYTES = 2_000_000;
/** The contract's maximum length of a name, in characters (EnvironmentFile.name). */
const MAX_NAME_CHARACTERS = 1_024;
/** The bits of a file's mode that make it executable for a user. */
const EXECUTABLE = 0o111;

/** The questions whose answers show the content of files. */
const SHOWING: readonly EnvironmentQuestion["question"]["case"][] = [
  "refreshChanges",
  "diffToCommit",
  "listFiles",
  "readFile",
];

/** The dependencies of the functions that answer questions. */
export interface AnswerTools extends RunnerTools {
  readonly client: Pick<WorkClient, "getQuestionCredential">;
  readonly watch: EnvironmentWatch;
}

/** Returns a function that answers questions about a runner's environments. */
export function environmentAnswers(tools: AnswerTools): AnswerQuestion {
  return async ({ id, environmentId, question }, signal, tell) => {
    if (question.case === "readRemote") {
      return { case: "remoteRead", value: await respondToRead(tools, { id, read: question.value, signal }) };
    }
    const watched = await findWorkspace(tools, environmentId);
    if (question.case !== "pushBranch") return respondAbout(tools, watched, question);
    const value = await respondToPush(tools, watched, { id, push: question.value, signal, tell });
    return { case: "branchPushed", value };
  };
}

async function respondAbout(
  { watch }: AnswerTools,
  watched: WatchedWorkspace,
  question: EnvironmentQuestion["question"],
): Promise<Answer> {
  if (SHOWING.includes(question.case)) watch.requireSecrets(watched);
  switch (question.case) {
    case "refreshChanges":
      await watch.refresh(watched);
      return { case: "changesRefreshed", value: {} };
    case "diffToCommit":
      return { case: "commitDiff", value: await respondWithDiff(watch, watched, question.value) };
    case "listFiles":
      return { case: "fileList", value: await respondWithFiles(watched, question.value) };
    case "readFile":
      return { case: "filePart", value: await respondWithPart(watched, question.value) };
    default:
      throw new WorkFailure(
        "question_unknown",
        "its runner is of an earlier release, which cannot answer that",
      );
  }
}

async function respondWithDiff(
  watch: EnvironmentWatch,
  watched: WatchedWorkspace,
  { commit, offset, limit }: EnvironmentQuestion_DiffToCommit,
) {
  const { files: all, filesLeftOut } = await watch.exclusively(watched, (git) => {
    // Include the secrets of work that began while this call waited for its turn.
    const secrets = watch.secretsOf(watched.environmentId);
    secrets.addAll(watched.secrets);
    return diffToCommit(git, { ...watched, secrets }, commit);
  });
  const hash = createHash("sha256");
  const files: EnvironmentFileDiff[] = [];
  let bytes = 0;
  for (const [place, file] of all.entries()) {
    const binary = toBinary(EnvironmentFileDiffSchema, file);
    hash.update(`${binary.length} `).update(binary);
    bytes += place < offset ? 0 : binary.length;
    const fits = files.length < Math.min(limit, MAX_FILES) && (files.length === 0 || bytes <= MAX_DIFF_BYTES);
    if (place >= offset && fits) files.push(file);
  }
  const hasMore = all.length > offset + files.length;
  return { files, hasMore, digest: hash.digest("hex"), filesLeftOut };
}

async function respondWithFiles(
  { workspace, secrets }: WatchedWorkspace,
  { path, offset, limit }: EnvironmentQuestion_ListFiles,
) {
  const part = { offset, limit: Math.min(limit, MAX_FILES) };
  const { entries, hasMore, leftOut } = await listTree(workspace, path, part);
  return {
    files: entries.map(({ name, stat }) => fileOf(name, stat, secrets)),
    hasMore,
    filesLeftOut: leftOut,
  };
}

async function respondWithPart(
  { workspace, secrets }: WatchedWorkspace,
  { path, offset, maxBytes: requested }: EnvironmentQuestion_ReadFile,
) {
  const maxBytes = Math.min(requested, MAX_READ_BYTES);
  const { data, readBytes, stat } = await readTree(workspace, path, {
    offset: Number(offset),
    maxBytes,
    secrets,
  });
  return { file: fileOf(Buffer.from(basename(path)), stat, secrets), data, readBytes };
}

function fileOf(name: Buffer, stat: Stats, secrets: Secrets): EnvironmentFile {
  const masked = secrets.mask(name).toString("utf8").slice(0, MAX_NAME_CHARACTERS).toWellFormed();
  const isFile = stat.isFile();
  return create(EnvironmentFileSchema, {
    name: masked,
    nameAltered: !Buffer.from(masked).equals(name),
    kind: kindOf(stat),
    sizeBytes: BigInt(isFile ? stat.size : 0),
    executable: isFile && (stat.mode & EXECUTABLE) !== 0,
    modifiedAt: timestampFromMs(Math.max(0, Math.floor(stat.mtimeMs))),
  });
}

function kindOf(stat: Stats): Kind {
  if (stat.isFile()) return Kind.FILE;
  if (stat.isDirectory()) return Kind.FOLDER;
  return stat.isSymbolicLink() ? Kind.LINK : Kind.OTHER;
}

/** @throws WorkFailure environment_absent */
async function findWorkspace(tools: AnswerTools, environmentId: string): Promise<WatchedWorkspace> {
  const workspace = environmentWorkspace(tools, environmentId);
  const checkouts = await readCheckouts(workspace);
  if (!checkouts)
    throw new WorkFailure("environment_absent", "the environment is not made yet, or has been removed");
  return { environmentId, workspace, checkouts, secrets: tools.watch.secretsOf(environmentId) };
}

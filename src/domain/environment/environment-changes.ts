import { create } from "@bufbuild/protobuf";
import {
  type AgentExecution_Status,
  type AgentExecution_Status_OutputValue as OutputValue,
  AgentExecution_Status_OutputValueSchema as OutputValueSchema,
} from "#gen/service/v1/agent_pb.js";
import {
  type ChangeCounts,
  ChangeCountsSchema,
  DiffBase,
  type EnvironmentChanges,
  type RepositoryChanges,
} from "#gen/service/v1/environment_changes_pb.js";
import { permissionDenied, valueUnusable } from "../error.ts";
import type { Caller } from "../identity/caller.ts";

/** Returns whether a caller may read the contents of an environment, regardless of the agent runs in it. */
export function isOpenTo({ role, subject }: Caller, creator: { id: string; principal: number }): boolean {
  return role === "administrator" || (creator.id === subject.id && creator.principal === subject.principal);
}

/**
 * Requires that the caller may read the contents of an environment, or an agent run in it.
 * @throws DomainError PERMISSION_DENIED
 */
export function requireReadable(mayRead: boolean): void {
  if (mayRead) return;
  const permission = "get_environment_changes";
  throw permissionDenied(
    permission,
    `the permission ${permission} reaches only environments of the caller and of agent runs that it may read`,
  );
}

const MAX_FILES = 2 ** 31 - 1;
const MAX_LINES = 2n ** 63n - 1n;

/** Returns the sums of the counts of all repositories, or the largest count that a response can have. */
export function totalCounts(repositories: readonly RepositoryChanges[]): ChangeCounts {
  const files = (one: number, other: number) => Math.min(one + other, MAX_FILES);
  const lines = (one: bigint, other: bigint) => (one + other < MAX_LINES ? one + other : MAX_LINES);
  const total = create(ChangeCountsSchema);
  for (const { counts } of repositories) {
    if (!counts) continue;
    total.changedFiles = files(total.changedFiles, counts.changedFiles);
    total.addedFiles = files(total.addedFiles, counts.addedFiles);
    total.deletedFiles = files(total.deletedFiles, counts.deletedFiles);
    total.renamedFiles = files(total.renamedFiles, counts.renamedFiles);
    total.addedLines = lines(total.addedLines, counts.addedLines);
    total.deletedLines = lines(total.deletedLines, counts.deletedLines);
  }
  return total;
}

/**
 * Requires that a request does not name both a base and a commit to compare with.
 * @throws DomainError VALUE_UNUSABLE
 */
export function requireOneBase({ base, commit }: { readonly base: DiffBase; readonly commit: string }): void {
  if (commit === "" || base === DiffBase.UNSPECIFIED) return;
  throw valueUnusable("commit", "the diff is against a base or a commit: leave out one of them");
}

/** Returns the base of a diff that a request names. */
export function diffBaseOf(requested: DiffBase): DiffBase {
  return requested || DiffBase.ENVIRONMENT;
}

/**
 * Requires that no two diffs are against the same base.
 * @throws DomainError VALUE_UNUSABLE
 */
export function requireDistinctBases(diffs: readonly { readonly base: DiffBase }[]): void {
  if (new Set(diffs.map(({ base }) => base)).size === diffs.length) return;
  throw valueUnusable("diffs", "two diffs are against the same base: send one of each");
}

/**
 * Puts a summary of the changes in an agent execution's environment into its status, before it is sent.
 * @param version number of reports that changed anything
 */
export function applyChanges(
  status: AgentExecution_Status,
  { digest, repositories, counts }: EnvironmentChanges,
  version: number,
): void {
  const [first] = repositories;
  const add = (key: string, value: OutputValue["value"]) => {
    status.outputs[key] = create(OutputValueSchema, { value });
  };
  const addText = (key: string, value: string | undefined) => {
    if (value) add(key, { case: "stringValue", value });
  };
  const addNumber = (key: string, value: number | bigint) =>
    add(key, { case: "intValue", value: BigInt(value) });
  status.statusVersion += BigInt(version);
  addText("changes_digest", digest);
  // The first repository is the one that the environment's names and paths refer to.
  addText("branch", first?.branch);
  addText("base_commit", first?.baseCommit);
  addText("head_commit", first?.headCommit);
  addNumber(
    "commits_ahead",
    repositories.reduce((sum, { commitsAhead }) => sum + commitsAhead, 0),
  );
  addNumber("changed_files", counts?.changedFiles ?? 0);
  addNumber("added_files", counts?.addedFiles ?? 0);
  addNumber("deleted_files", counts?.deletedFiles ?? 0);
  addNumber("renamed_files", counts?.renamedFiles ?? 0);
  addNumber("added_lines", counts?.addedLines ?? 0);
  addNumber("deleted_lines", counts?.deletedLines ?? 0);
}

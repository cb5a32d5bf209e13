import { toJson } from "@bufbuild/protobuf";
import { ConnectError, createClient } from "@connectrpc/connect";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import {
  DiffBase,
  type EnvironmentChanges,
  type EnvironmentFile,
  type EnvironmentFileDiff,
  EnvironmentFileDiffSchema,
  EnvironmentFileSchema,
  EnvironmentFileDiff_Kind as Kind,
  EnvironmentFileDiff_PatchOmission as Omission,
  EnvironmentFile_Kind as What,
} from "#gen/service/v1/environment_changes_pb.js";
import { EnvironmentService } from "#gen/service/v1/environment_service_pb.js";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { createHttpTransport } from "../../../runner/protocol/connection.ts";
import { StartError } from "../../start-error.ts";
import { table } from "../../terminal/table.ts";
import { call, isNotFound, readPages } from "../call.ts";
import { jsonText, printable, timeOf } from "../printable.ts";
import type { ServerAccess } from "../server-access.ts";

/** What `chartroom run diff` compares a run's environment with. */
export interface DiffChoice {
  readonly run: string;
  /** A commit; undefined for the environment's initial state, or the last turn. */
  readonly commit: string | undefined;
  readonly lastTurn: boolean;
  /** True to make the runner refresh the diff first. */
  readonly refresh: boolean;
}

/** The files of a diff. */
export interface RunDiff {
  readonly files: readonly EnvironmentFileDiff[];
  /** Number of further files that differ and are left out. */
  readonly leftOut: number;
  /** Why the runner could not refresh the diff, if this is its last report. */
  readonly problem?: StartError;
}

/**
 * Reads a run's changes, or the runner's last report if it cannot refresh them now.
 * @throws StartError
 */
export async function readRunDiff(
  access: ServerAccess,
  { run, commit = "", lastTurn, refresh }: DiffChoice,
): Promise<RunDiff> {
  if (lastTurn && commit !== "") throw new StartError("give --commit or --last-turn, not both");
  const environments = environmentsOf(access);
  const environmentId = await environmentOf(access, run);
  const base = lastTurn ? DiffBase.LAST_TURN : DiffBase.UNSPECIFIED;
  try {
    if (refresh) {
      await call(access, (options) =>
        environments.getEnvironmentChanges({ environmentId, refresh: true }, options),
      );
    }
    return await readDiff(access, { environmentId, base, commit });
  } catch (error) {
    const changes = isUnreachable(error) ? await findChanges(access, environmentId) : undefined;
    // Only the runner can compare with another commit.
    if (!changes || !isBase(changes, commit)) throw error;
    const { message, exitCode } = error as StartError;
    const problem = `this is the diff as it was reported at ${timeOf(changes.refreshedAt)} UTC: ${message}`;
    const diff = await readDiff(access, { environmentId, base, commit: "" });
    return { ...diff, problem: new StartError(problem, { exitCode, cause: error }) };
  }
}

async function readDiff(
  access: ServerAccess,
  request: { readonly environmentId: string; readonly base: DiffBase; readonly commit: string },
): Promise<RunDiff> {
  let leftOut = 0;
  const files = await readPages(Number.POSITIVE_INFINITY, async (pagination) => {
    const page = await call(access, (options) =>
      environmentsOf(access).getEnvironmentDiff({ ...request, pagination }, options),
    );
    leftOut = page.filesLeftOut;
    return { elements: page.files, pagination: page.pagination };
  });
  return { files, leftOut };
}

/** Returns the last report of an environment's changes; undefined when there is none. */
async function findChanges(
  access: ServerAccess,
  environmentId: string,
): Promise<EnvironmentChanges | undefined> {
  const read = call(access, (options) =>
    environmentsOf(access).getEnvironmentChanges({ environmentId }, options),
  );
  const found = await read.catch((error) => {
    if (isNotFound(error)) return undefined;
    throw error;
  });
  return found?.changes;
}

/** Returns whether the reported diff is relative to a commit; empty means the initial checkout. */
function isBase({ repositories }: EnvironmentChanges, commit: string): boolean {
  if (commit === "") return true;
  return repositories.length === 1 && repositories[0]?.baseCommit.startsWith(commit.toLowerCase()) === true;
}

/** Returns whether the environment's runner could not be reached. */
function isUnreachable(error: unknown): boolean {
  if (!(error instanceof StartError)) return false;
  return ConnectError.from(error.cause)
    .findDetails(ErrorDetailSchema)
    .some(({ reason }) => reason === ErrorReason.ENVIRONMENT_UNREACHABLE);
}

/** Returns a diff as a JSON list of service.v1.EnvironmentFileDiff. */
export function diffJson({ files }: RunDiff): string {
  return jsonText(files.map((file) => toJson(EnvironmentFileDiffSchema, file)));
}

const [BOLD, RED, GREEN, CYAN, PLAIN] = ["\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[m"];

/**
 * Returns a diff in git's format without characters that would control the terminal: in names they are escaped like
 * git does, in lines they are replaced.
 */
export function diffText({ files, leftOut }: RunDiff, hasColours: boolean): string {
  const paint = (colour: string, text: string) => (hasColours ? `${colour}${text}${PLAIN}` : text);
  const lines = files.flatMap((file) => [
    ...headOf(file).map((line) => paint(BOLD, line)),
    ...linesOf(file.patch).map((line) => {
      if (line.startsWith("@@")) return line.replace(/^@@ .*? @@/, (range) => paint(CYAN, range));
      if (line.startsWith("+")) return paint(GREEN, line);
      return line.startsWith("-") ? paint(RED, line) : line;
    }),
  ]);
  if (leftOut > 0) lines.push(`${leftOut} more files differ`);
  return lines.map((line) => `${line}\n`).join("");
}

function linesOf(patch: string): string[] {
  return printable(patch)
    .replace(/\n$/, "")
    .split("\n")
    .filter((line) => line !== "");
}

function headOf(file: EnvironmentFileDiff): string[] {
  const { kind, path, oldPath, oldMode, newMode, patch, patchOmission, sizeBytes } = file;
  const [before, after] = [quoted(`a/${oldPath || path}`), quoted(`b/${path}`)];
  const lines = [`diff --git ${before} ${after}`];
  if (kind === Kind.ADDED) lines.push(`new file mode ${newMode}`);
  else if (kind === Kind.DELETED) lines.push(`deleted file mode ${oldMode}`);
  else if (oldMode !== newMode) lines.push(`old mode ${oldMode}`, `new mode ${newMode}`);
  if (kind === Kind.RENAMED) lines.push(`rename from ${quoted(oldPath)}`, `rename to ${quoted(path)}`);
  const names = [kind === Kind.ADDED ? "/dev/null" : before, kind === Kind.DELETED ? "/dev/null" : after];
  if (patchOmission === Omission.BINARY) lines.push(`Binary files ${names.join(" and ")} differ`);
  else if (patchOmission !== Omission.UNSPECIFIED)
    lines.push(`Files ${names.join(" and ")} differ, ${sizeBytes} bytes now: not shown`);
  if (patch !== "") lines.push(`--- ${names[0]}`, `+++ ${names[1]}`);
  return lines;
}

const ESCAPES: Readonly<Record<string, string>> = { "\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\" };

/** Returns a path in git's format: quoted when a character is escaped. */
function quoted(path: string): string {
  const octal = (character: string) =>
    [...Buffer.from(character)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
  const escaped = path.replaceAll(
    /[\p{Cc}"\\\u{202a}-\u{202e}\u{2066}-\u{2069}\u{e0000}-\u{e007f}]/gu,
    (character) => ESCAPES[character] ?? octal(character),
  );
  return escaped === path ? path : `"${escaped}"`;
}

/** Lists a folder of a run's environment. @throws StartError */
export async function listRunFiles(
  access: ServerAccess,
  { run, path }: { readonly run: string; readonly path: string },
): Promise<EnvironmentFile[]> {
  const environmentId = await environmentOf(access, run);
  return readPages(Number.POSITIVE_INFINITY, async (pagination) => {
    const page = await call(access, (options) =>
      environmentsOf(access).listEnvironmentFiles({ environmentId, path, pagination }, options),
    );
    return { elements: page.files, pagination: page.pagination };
  });
}

/** Returns files as a JSON list of service.v1.EnvironmentFile. */
export function filesJson(files: readonly EnvironmentFile[]): string {
  return jsonText(files.map((file) => toJson(EnvironmentFileSchema, file)));
}

const MARKS: Readonly<Partial<Record<What, string>>> = { [What.FOLDER]: "/", [What.LINK]: "@" };

/** Returns files as a table for people; folders end with a slash, links with @. */
export function filesTable(files: readonly EnvironmentFile[], maxWidth?: number): string {
  const rows = files.map(({ name, kind, sizeBytes, executable, modifiedAt }) => [
    kind === What.FILE ? String(sizeBytes) : "",
    timeOf(modifiedAt),
    `${quoted(name)}${executable ? "*" : (MARKS[kind] ?? "")}`,
  ]);
  return rows.length === 0 ? "no files\n" : table(["BYTES", "CHANGED (UTC)", "NAME"], rows, maxWidth);
}

/**
 * Reads a file of a run's environment.
 * @param take receives each part
 * @throws StartError
 */
export async function readRunFile(
  access: ServerAccess,
  { run, path }: { readonly run: string; readonly path: string },
  take: (data: Uint8Array) => void,
): Promise<void> {
  const environmentId = await environmentOf(access, run);
  let offset = 0n;
  do {
    const request = { environmentId, path, offset };
    const part = await call(access, (options) =>
      environmentsOf(access).readEnvironmentFile(request, options),
    );
    take(part.data);
    offset = part.nextOffset;
  } while (offset !== 0n);
}

function environmentsOf({ server }: ServerAccess) {
  return createClient(EnvironmentService, createHttpTransport(server));
}

/** @throws StartError for a run without an environment */
async function environmentOf(access: ServerAccess, agentExecutionId: string): Promise<string> {
  const agents = createClient(AgentService, createHttpTransport(access.server));
  const { agentExecution } = await call(access, (options) =>
    agents.getAgentExecution({ agentExecutionId }, options),
  );
  const environmentId = agentExecution?.status?.usedEnvironments[0]?.environmentId;
  if (!environmentId) throw new StartError("the run has no environment yet");
  return environmentId;
}

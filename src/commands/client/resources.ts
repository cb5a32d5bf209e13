import { type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import type { EnvironmentInitializer } from "#gen/service/v1/environment_pb.js";
import { type Environment, EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { EnvironmentService } from "#gen/service/v1/environment_service_pb.js";
import { type Project, ProjectSchema } from "#gen/service/v1/project_pb.js";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import { RunnerKind } from "#gen/service/v1/runner_configuration_pb.js";
import { type Runner, RunnerPhase } from "#gen/service/v1/runner_pb.js";
import { RunnerService } from "#gen/service/v1/runner_service_pb.js";
import { createHttpTransport } from "../../runner/protocol/connection.ts";
import { StartError } from "../start-error.ts";
import { table } from "../terminal/table.ts";
import { call, keyedCall, readPages } from "./call.ts";
import { enumWords, jsonText, printable, timeOf } from "./printable.ts";
import type { ServerAccess } from "./server-access.ts";

/** Returns runners. @throws StartError */
export function listRunners(access: ServerAccess, limit: number): Promise<Runner[]> {
  const runners = createClient(RunnerService, createHttpTransport(access.server));
  return readPages(limit, async (pagination) => {
    const page = await call(access, (options) => runners.listRunners({ pagination }, options));
    return { elements: page.runners, pagination: page.pagination };
  });
}

/** Returns runners as a table for people. */
export function runnerTable(runners: readonly Runner[], maxWidth?: number): string {
  if (runners.length === 0) return "no runners: chartroom runner create NAME makes one\n";
  const rows = runners.map(({ runnerId, spec, status, kind, createdAt, name }) => [
    runnerId,
    stateOfRunner(spec, status),
    enumWords(RunnerKind[kind]),
    status?.version ?? "",
    timeOf(createdAt),
    name,
  ]);
  return table(["RUNNER", "STATE", "KIND", "VERSION", "CREATED (UTC)", "NAME"], rows, maxWidth);
}

/** Returns the phase of a runner in words, with a note that a paused runner gets no work. */
function stateOfRunner(spec: Runner["spec"], status: Runner["status"]): string {
  const phase = enumWords(RunnerPhase[status?.phase ?? 0]);
  return spec?.desiredPhase === RunnerPhase.INACTIVE ? `${phase}, paused` : phase;
}

/** A new runner, and the token with which its program registers once. */
export interface CreatedRunner {
  readonly runnerId: string;
  readonly exchangeToken: string;
}

/** Creates a runner. @throws StartError */
export async function createRunner(access: ServerAccess, name: string): Promise<CreatedRunner> {
  const runners = createClient(RunnerService, createHttpTransport(access.server));
  const { runner, exchangeToken } = await keyedCall(access, (options) =>
    runners.createRunner({ name }, options),
  );
  return { runnerId: runner?.runnerId ?? "", exchangeToken };
}

/** Returns projects. @throws StartError */
export function listProjects(
  access: ServerAccess,
  { search = "", limit }: { readonly search?: string | undefined; readonly limit: number },
): Promise<Project[]> {
  const projects = createClient(ProjectService, createHttpTransport(access.server));
  return readPages(limit, async (pagination) => {
    const page = await call(access, (options) =>
      projects.listProjects({ filter: { search }, pagination }, options),
    );
    return { elements: page.projects, pagination: page.pagination };
  });
}

/** Returns projects as a table for people. */
export function projectTable(projects: readonly Project[], maxWidth?: number): string {
  if (projects.length === 0) return "no projects\n";
  const rows = projects.map(({ id, metadata, initializer }) => [
    id,
    timeOf(metadata?.createdAt),
    metadata?.name ?? "",
    sourceOf(initializer),
  ]);
  return table(["PROJECT", "CREATED (UTC)", "NAME", "SOURCE"], rows, maxWidth);
}

/** Number of projects to create per call: few, so that a failed call leaves little in doubt. */
const PROJECTS_PER_CALL = 20;

/** A repository in a list, and its line number from 1. */
export interface ImportLine {
  readonly line: number;
  readonly remoteUri: string;
}

/** The result of an import. */
export interface Import {
  readonly created: readonly Project[];
  readonly failed: readonly (ImportLine & { readonly error: string })[];
}

/** Returns the lines that name repositories, each repository once; skips empty lines and comments. */
export function importLines(text: string): ImportLine[] {
  const seen = new Set<string>();
  return text.split("\n").flatMap((each, at) => {
    const remoteUri = each.trim();
    if (remoteUri === "" || remoteUri.startsWith("#") || seen.has(remoteUri)) return [];
    seen.add(remoteUri);
    return [{ line: at + 1, remoteUri }];
  });
}

/** Creates a project for each repository in a list. A failed line does not affect the others. @throws StartError */
export async function importProjects(access: ServerAccess, text: string): Promise<Import> {
  const lines = importLines(text);
  if (lines.length === 0) throw new StartError("the list names no repository: give one address a line");
  const projects = createClient(ProjectService, createHttpTransport(access.server));
  const created: Project[] = [];
  const failed: (ImportLine & { error: string })[] = [];
  for (let from = 0; from < lines.length; from += PROJECTS_PER_CALL) {
    const part = lines.slice(from, from + PROJECTS_PER_CALL);
    const request = {
      projects: part.map(({ remoteUri }) => ({
        initializer: { specs: [{ spec: { case: "git" as const, value: { remoteUri } } }] },
      })),
    };
    const answer = await keyedCall(access, (options) => projects.createProjects(request, options)).catch(
      (error: StartError) => {
        const done = created.length === 0 ? "nothing before it" : `${created.length} projects before it`;
        const place = `from line ${part[0]?.line} on nothing is known, and ${done} was created`;
        throw new StartError(`${error.message} (${place})`, { exitCode: error.exitCode, cause: error.cause });
      },
    );
    created.push(...answer.createdProjects);
    for (const { index, error } of answer.failedProjects) {
      const line = part[index];
      if (line) failed.push({ ...line, remoteUri: withoutPassword(line.remoteUri), error });
    }
  }
  return { created, failed };
}

/** Removes a password from an address, for printing; the server refuses such addresses. */
function withoutPassword(remoteUri: string): string {
  return remoteUri.replace(/^([^/?#]*:\/\/[^:/?#]*):[^/?#]+@/, "$1:***@");
}

/** Returns the result of an import as JSON. */
export function importJson({ created, failed }: Import): string {
  return jsonText({
    createdProjects: created.map((project) => toJson(ProjectSchema, project)),
    failedLines: failed,
  });
}

/** Returns the failures, one per line. */
export function importFailures({ failed }: Import): string {
  return printable(
    failed.map(({ line, remoteUri, error }) => `line ${line}: ${remoteUri}: ${error}\n`).join(""),
  );
}

/** The phases of environments by name on the command line. */
const ENVIRONMENT_PHASES = {
  creating: EnvironmentPhase.CREATING,
  starting: EnvironmentPhase.STARTING,
  running: EnvironmentPhase.RUNNING,
  updating: EnvironmentPhase.UPDATING,
  stopping: EnvironmentPhase.STOPPING,
  stopped: EnvironmentPhase.STOPPED,
  deleting: EnvironmentPhase.DELETING,
} as const;
export type EnvironmentPhaseName = keyof typeof ENVIRONMENT_PHASES;

/** Selects the environments to list. */
export interface EnvironmentFilter {
  readonly phases: readonly EnvironmentPhaseName[];
  /** Ids of projects; empty for all. */
  readonly projects: readonly string[];
  readonly limit: number;
}

/** Returns environments. @throws StartError */
export function listEnvironments(
  access: ServerAccess,
  { phases, projects, limit }: EnvironmentFilter,
): Promise<Environment[]> {
  const environments = createClient(EnvironmentService, createHttpTransport(access.server));
  const filter = {
    statusPhases: phases.map((phase) => ENVIRONMENT_PHASES[phase]),
    projectIds: [...projects],
  };
  return readPages(limit, async (pagination) => {
    const page = await call(access, (options) =>
      environments.listEnvironments({ filter, pagination }, options),
    );
    return { elements: page.environments, pagination: page.pagination };
  });
}

/** Returns environments as a table for people. */
export function environmentTable(environments: readonly Environment[], maxWidth?: number): string {
  if (environments.length === 0) return "no environments\n";
  const rows = environments.map(({ id, metadata, status }) => [
    id,
    enumWords(EnvironmentPhase[status?.phase ?? 0]),
    timeOf(metadata?.createdAt),
    metadata?.projectId ?? "",
    metadata?.name ?? "",
    status?.failureMessage.join("; ") ?? "",
  ]);
  return table(["ENVIRONMENT", "PHASE", "CREATED (UTC)", "PROJECT", "NAME", "FAILURE"], rows, maxWidth);
}

/** Returns messages as a JSON list. */
export function listJson<D extends DescMessage>(schema: D, messages: readonly MessageShape<D>[]): string {
  return jsonText(messages.map((message) => toJson(schema, message)));
}

function sourceOf(initializer: EnvironmentInitializer | undefined): string {
  const sources = initializer?.specs.map(({ spec }) => {
    if (spec.case === "git") return spec.value.remoteUri;
    return spec.case === "contextUrl" ? spec.value.url : "";
  });
  return sources?.join(", ") ?? "";
}

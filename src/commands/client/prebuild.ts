import { toJson } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import {
  type Prebuild,
  PrebuildPhase,
  PrebuildSchema,
  PrebuildMetadata_PrebuildTrigger as Trigger,
} from "#gen/service/v1/prebuild_pb.js";
import { PrebuildService } from "#gen/service/v1/prebuild_service_pb.js";
import { createHttpTransport } from "../../runner/protocol/connection.ts";
import { StartError } from "../start-error.ts";
import { table } from "../terminal/table.ts";
import { call, keyedCall, readPages } from "./call.ts";
import { enumWords, jsonText, printable, timeOf } from "./printable.ts";
import type { ServerAccess } from "./server-access.ts";

const prebuildsOf = ({ server }: ServerAccess) => createClient(PrebuildService, createHttpTransport(server));

/** A prebuild to make. */
export interface NewPrebuild {
  readonly projectId: string;
  /** Default: the first class of the project's prebuild configuration. */
  readonly environmentClassId?: string | undefined;
  /** Default: the timeout of the project's prebuild configuration. */
  readonly timeoutSeconds?: number | undefined;
}

/** Creates a prebuild and returns its id. @throws StartError */
export async function createPrebuild(
  access: ServerAccess,
  { projectId, environmentClassId, timeoutSeconds }: NewPrebuild,
): Promise<string> {
  const { prebuild } = await keyedCall(access, (options) =>
    prebuildsOf(access).createPrebuild(
      {
        projectId,
        ...(environmentClassId !== undefined && { environmentClassId }),
        spec: timeoutSeconds === undefined ? {} : { timeout: { seconds: BigInt(timeoutSeconds) } },
      },
      options,
    ),
  );
  return prebuild?.id ?? "";
}

/** The phases of prebuilds by name on the command line. */
const PREBUILD_PHASES = {
  pending: PrebuildPhase.PENDING,
  running: PrebuildPhase.RUNNING,
  stopping: PrebuildPhase.STOPPING,
  completed: PrebuildPhase.COMPLETED,
  failed: PrebuildPhase.FAILED,
  cancelling: PrebuildPhase.CANCELLING,
  cancelled: PrebuildPhase.CANCELLED,
  deleting: PrebuildPhase.DELETING,
} as const;
export type PrebuildPhaseName = keyof typeof PREBUILD_PHASES;

/** Selects the prebuilds to list. */
export interface PrebuildFilter {
  readonly phases: readonly PrebuildPhaseName[];
  /** Ids of projects; empty for all. */
  readonly projects: readonly string[];
  readonly limit: number;
}

/** Returns prebuilds, the newest first. @throws StartError */
export function listPrebuilds(
  access: ServerAccess,
  { phases, projects, limit }: PrebuildFilter,
): Promise<Prebuild[]> {
  const filter = { phases: phases.map((phase) => PREBUILD_PHASES[phase]), projectIds: [...projects] };
  return readPages(limit, async (pagination) => {
    const page = await call(access, (options) =>
      prebuildsOf(access).listPrebuilds({ filter, pagination }, options),
    );
    return { elements: page.prebuilds, pagination: page.pagination };
  });
}

/** Returns a prebuild. @throws StartError */
export async function getPrebuild(access: ServerAccess, prebuildId: string): Promise<Prebuild> {
  const { prebuild } = await call(access, (options) =>
    prebuildsOf(access).getPrebuild({ prebuildId }, options),
  );
  if (!prebuild) throw new StartError("the server has answered without the prebuild");
  return prebuild;
}

/** Cancels a prebuild. @throws StartError */
export async function cancelPrebuild(access: ServerAccess, prebuildId: string): Promise<void> {
  await call(access, (options) => prebuildsOf(access).cancelPrebuild({ prebuildId }, options));
}

/** Deletes a prebuild with its workspace. @throws StartError */
export async function deletePrebuild(access: ServerAccess, prebuildId: string): Promise<void> {
  await call(access, (options) => prebuildsOf(access).deletePrebuild({ prebuildId }, options));
}

/** Returns prebuilds as a table for people. */
export function prebuildTable(prebuilds: readonly Prebuild[], maxWidth?: number): string {
  if (prebuilds.length === 0) return "no prebuilds\n";
  const rows = prebuilds.map(({ id, metadata, status }) => [
    id,
    enumWords(PrebuildPhase[status?.phase ?? 0]),
    timeOf(metadata?.createdAt),
    timeOf(status?.completionTime),
    enumWords(Trigger[metadata?.triggeredBy ?? 0]),
    metadata?.projectId ?? "",
    metadata?.environmentClassId ?? "",
    [status?.failureMessage, status?.warningMessage].filter(Boolean).join("; "),
  ]);
  const headings = ["PREBUILD", "PHASE", "CREATED (UTC)", "ENDED (UTC)", "REQUESTED BY", "PROJECT", "CLASS"];
  return table([...headings, "FAILURE"], rows, maxWidth);
}

/** Returns a prebuild with all its details, as text for people. */
export function prebuildText({ id, metadata, spec, status }: Prebuild): string {
  const facts: readonly (readonly [string, string])[] = [
    ["prebuild", id],
    ["phase", enumWords(PrebuildPhase[status?.phase ?? 0])],
    ["failure", status?.failureMessage ?? ""],
    ["warning", status?.warningMessage ?? ""],
    ["project", metadata?.projectId ?? ""],
    ["class", metadata?.environmentClassId ?? ""],
    ["asked by", enumWords(Trigger[metadata?.triggeredBy ?? 0])],
    ["creator", metadata?.creator?.id ?? ""],
    ["executor", metadata?.executor?.id ?? ""],
    ["timeout", spec?.timeout ? `${durationMs(spec.timeout) / 1_000} s` : ""],
    ["created", timeOf(metadata?.createdAt)],
    ["changed", timeOf(metadata?.updatedAt)],
    ["ended", timeOf(status?.completionTime)],
  ];
  const lines = facts.flatMap(([name, value]) => (value ? [`${`${name}:`.padEnd(10)}${value}\n`] : []));
  return printable(lines.join(""));
}

/** Returns a prebuild as JSON. */
export function prebuildJson(prebuild: Prebuild): string {
  return jsonText(toJson(PrebuildSchema, prebuild));
}

/** Returns prebuilds as a JSON list. */
export function prebuildsJson(prebuilds: readonly Prebuild[]): string {
  return jsonText(prebuilds.map((each) => toJson(PrebuildSchema, each)));
}

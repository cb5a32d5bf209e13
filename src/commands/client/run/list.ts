import { toJson } from "@bufbuild/protobuf";
import {
  type AgentExecution,
  AgentExecutionFailureReason,
  AgentExecutionSchema,
  AgentExecution_Phase as Phase,
} from "#gen/service/v1/agent_pb.js";
import { table } from "../../terminal/table.ts";
import { call, readPages } from "../call.ts";
import { jsonText, timeOf } from "../printable.ts";
import type { ServerAccess } from "../server-access.ts";
import { agentsOf, findAgentId, listAgents } from "./run.ts";

/** The phases by name on the command line. */
const PHASES = {
  pending: Phase.PENDING,
  running: Phase.RUNNING,
  waiting: Phase.WAITING_FOR_INPUT,
  stopped: Phase.STOPPED,
} as const;
export type PhaseName = keyof typeof PHASES;

/** Selects the runs to list. */
export interface RunFilter {
  readonly phases: readonly PhaseName[];
  readonly agent: string | undefined;
  /** The maximum number of runs to list. */
  readonly limit: number;
}

/** Returns runs, the newest first. @throws StartError */
export async function listRuns(
  access: ServerAccess,
  { phases, agent, limit }: RunFilter,
): Promise<AgentExecution[]> {
  const agents = agentsOf(access);
  const filter = {
    statusPhases: phases.map((phase) => PHASES[phase]),
    agentIds: agent === undefined ? [] : [await findAgentId(access, agent)],
  };
  return readPages(limit, async (pagination) => {
    const page = await call(access, (options) => agents.listAgentExecutions({ filter, pagination }, options));
    return { elements: page.agentExecutions, pagination: page.pagination };
  });
}

/** Returns runs as a table for people. @throws StartError */
export async function runTable(
  access: ServerAccess,
  runs: readonly AgentExecution[],
  maxWidth?: number,
): Promise<string> {
  if (runs.length === 0) return "no runs\n";
  const names = new Map((await listAgents(access)).map(({ id, name }) => [id, name]));
  const rows = runs.map(({ id, metadata, spec, status }) => [
    id,
    phaseName(status?.phase),
    timeOf(metadata?.createdAt),
    names.get(spec?.agentId ?? "") ?? spec?.agentId ?? "",
    metadata?.name ?? "",
    status?.failureMessage
      ? `${AgentExecutionFailureReason[status.failureReason].toLowerCase()}: ${status.failureMessage}`
      : "",
  ]);
  return table(["RUN", "PHASE", "STARTED (UTC)", "AGENT", "NAME", "FAILURE"], rows, maxWidth);
}

/** Returns runs as a JSON list of service.v1.AgentExecution. */
export function runJson(runs: readonly AgentExecution[]): string {
  return jsonText(runs.map((run) => toJson(AgentExecutionSchema, run)));
}

function phaseName(phase: Phase | undefined): string {
  const entry = Object.entries(PHASES).find(([, each]) => each === phase);
  return entry?.[0] ?? "";
}

import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { AGENT_WITH_ENVIRONMENT, API_AGENT_WITH_ENVIRONMENT } from "../../store/runner/work.ts";
import { agentWithEnvironmentWork } from "../agent/work/agent-with-environment-work.ts";
import { agentWork } from "../agent/work/agent-work.ts";
import { environmentWork } from "../environment/environment-work.ts";
import { prebuildRemovalWork, prebuildWork } from "../project/prebuild-work.ts";
import type { WorkHandler } from "../runner/work-handler.ts";
import { actionWork } from "../workflow/action/action-work.ts";

const HANDLERS: Readonly<Record<number, WorkHandler>> = {
  [WorkKind.ENVIRONMENT]: environmentWork,
  [WorkKind.ACTION]: actionWork,
  [WorkKind.PREBUILD]: prebuildWork,
  [WorkKind.PREBUILD_REMOVAL]: prebuildRemovalWork,
  [WorkKind.AGENT]: agentWork,
  [AGENT_WITH_ENVIRONMENT]: agentWithEnvironmentWork,
  [API_AGENT_WITH_ENVIRONMENT]: agentWithEnvironmentWork,
};

/** Returns the handler of a kind of work, which rows store by number. */
export function handlerOf(kind: number): WorkHandler {
  const handler = HANDLERS[kind];
  if (!handler) throw new Error(`nothing handles work of the kind ${kind}`);
  return handler;
}

/** Registers the hooks by which earlier areas call later ones. Services, jobs and commands import this module. */
import { syncAgentExecutions } from "../agent/agent-environment.ts";
import { haltStepAgents } from "../agent/halt-step-agents.ts";
import { environmentChanged } from "../environment/environment-change.ts";
import { actionChanged } from "../workflow/execution/action-change.ts";

environmentChanged.set(syncAgentExecutions);
actionChanged.set(haltStepAgents);

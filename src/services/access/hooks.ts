/** Sets what earlier areas call in later ones. Whatever changes rows imports it: the services, jobs and commands. */
import { syncAgentExecutions } from "../agent/agent-environment.ts";
import { haltStepAgents } from "../agent/halt-step-agents.ts";
import { environmentChanged } from "../environment/environment-change.ts";
import { actionChanged } from "../workflow/execution/action-change.ts";

environmentChanged.set(syncAgentExecutions);
actionChanged.set(haltStepAgents);

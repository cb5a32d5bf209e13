import { create } from "@bufbuild/protobuf";
import {
  type WorkflowAction,
  WorkflowActionSchema,
  type WorkflowStep,
  WorkflowStepSchema,
  type WorkflowTrigger,
  type WorkflowTriggerContext,
  WorkflowTriggerContextSchema,
  WorkflowTriggerSchema,
} from "#gen/service/v1/workflow_pb.js";

/** Returns an action of these steps, one at a time. */
export function action(...steps: WorkflowStep[]): WorkflowAction {
  return create(WorkflowActionSchema, { limits: { maxParallel: 1, maxTotal: 1 }, steps });
}

export function task(command: string): WorkflowStep {
  return create(WorkflowStepSchema, { step: { case: "task", value: { command } } });
}

export function agent(prompt: string): WorkflowStep {
  return create(WorkflowStepSchema, { step: { case: "agent", value: { prompt } } });
}

export function approval(message: string): WorkflowStep {
  return create(WorkflowStepSchema, { step: { case: "approval", value: { message } } });
}

/** Returns a pull request with these texts; absent ones get valid defaults. */
export function pullRequest(texts: { title?: string; description?: string; branch?: string }): WorkflowStep {
  return create(WorkflowStepSchema, {
    step: { case: "pullRequest", value: { title: "t", branch: "b", ...texts } },
  });
}

/** Returns a report of one text, extracted by a prompt or a command. */
export function report(extraction: { case: "prompt" | "command"; value: string }, title = "t"): WorkflowStep {
  return create(WorkflowStepSchema, {
    step: {
      case: "report",
      value: { outputs: [{ title, key: "k", schema: { case: "string", value: {} }, extraction }] },
    },
  });
}

/** Returns a context of one agent's prompt. */
export function agentContext(prompt: string): WorkflowTriggerContext {
  return create(WorkflowTriggerContextSchema, { context: { case: "agent", value: { prompt } } });
}

/** Returns a context without any action. */
export function noProjects(): WorkflowTriggerContext {
  return create(WorkflowTriggerContextSchema, { context: { case: "projects", value: {} } });
}

/** Returns a context of these repositories. */
export function repositoryUrls(...repoUrls: string[]): WorkflowTriggerContext {
  const repositorySelector = { case: "repositoryUrls", value: { repoUrls } } as const;
  return create(WorkflowTriggerContextSchema, {
    context: { case: "repositories", value: { repositorySelector } },
  });
}

/** Returns a context of the repositories that a search finds. */
export function repositorySearch(
  repoSearchString: string,
  scmHost = "git.example.org",
): WorkflowTriggerContext {
  const repositorySelector = { case: "repoSelector", value: { repoSearchString, scmHost } } as const;
  return create(WorkflowTriggerContextSchema, {
    context: { case: "repositories", value: { repositorySelector } },
  });
}

/** Returns a manual trigger with this context. */
export function manual(context: WorkflowTriggerContext): WorkflowTrigger {
  return create(WorkflowTriggerSchema, { trigger: { case: "manual", value: {} }, context });
}

import { toJsonString } from "@bufbuild/protobuf";
import {
  type Workflow,
  WorkflowActionSchema,
  WorkflowTriggerContextSchema,
} from "#gen/service/v1/workflow_pb.js";

/** A parameter that a start may give. */
interface UsedParameter {
  readonly key: string;
  readonly description: string;
  readonly defaultValue?: string | undefined;
}

/** The expression for the value of a parameter (docs/workflows.md). */
const EXPRESSION = /\{\{\s*\.Parameters\.([a-zA-Z_]\w*)\s*\}\}/g;

/** Returns the parameters that a workflow declares, then those that only its expressions use. */
export function usedParameters({ spec }: Workflow): UsedParameter[] {
  const declared = spec?.parameters ?? [];
  const contexts = spec?.triggers.flatMap(({ trigger, context }) =>
    trigger.case === "manual" && context ? [toJsonString(WorkflowTriggerContextSchema, context)] : [],
  );
  const actions = [spec?.action, spec?.report].flatMap((action) =>
    action ? [toJsonString(WorkflowActionSchema, action)] : [],
  );
  const used = [...(contexts ?? []), ...actions].flatMap((text) =>
    [...text.matchAll(EXPRESSION)].map(([, key = ""]) => key),
  );
  const others = [...new Set(used)].filter((key) => !declared.some((parameter) => parameter.key === key));
  return [...declared, ...others.map((key) => ({ key, description: "" }))];
}

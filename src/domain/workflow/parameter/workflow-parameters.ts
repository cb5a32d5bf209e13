import { clone } from "@bufbuild/protobuf";
import {
  type Workflow_Spec,
  type WorkflowAction,
  WorkflowActionSchema,
  type WorkflowParameter,
  type WorkflowTrigger,
  type WorkflowTriggerContext,
  WorkflowTriggerContextSchema,
  WorkflowTriggerSchema,
} from "#gen/service/v1/workflow_pb.js";
import { valueUnusable } from "../../error.ts";
import { rewriteTexts, type VisitText, withRewrittenTexts } from "../../text/message-texts.ts";
import { checkText, keysOfText, renderText, requireNoExpressions } from "./parameter-position.ts";
import { parameterVariable } from "./parameter-reference.ts";

/** The fields of a workflow that a request contains; absent ones are not checked. */
export interface WrittenWorkflow {
  readonly name?: string | undefined;
  readonly description?: string | undefined;
  readonly triggers?: readonly WorkflowTrigger[] | undefined;
  readonly action?: WorkflowAction | undefined;
  readonly report?: WorkflowAction | undefined;
  readonly parameters?: readonly WorkflowParameter[] | undefined;
}

/**
 * Checks the parameter expressions of a workflow as it is written.
 * @throws DomainError VALUE_UNUSABLE, naming the place (action.steps[0].task.command), for an
 * expression that is malformed, is in none of the seven fields, or is in a command where sh could not
 * substitute it as data; also for a branch name that git rejects whatever its parameters are
 */
export function checkWorkflowParameters(written: WrittenWorkflow): void {
  const check: VisitText = (text) => {
    checkText(text);
    return text.text;
  };
  requireNoExpressions(written.name ?? "", "name");
  requireNoExpressions(written.description ?? "", "description");
  for (const [index, { description }] of (written.parameters ?? []).entries()) {
    requireNoExpressions(description, `parameters[${index}].description`);
  }
  for (const [index, trigger] of (written.triggers ?? []).entries()) {
    rewriteTexts(WorkflowTriggerSchema, trigger, `triggers[${index}]`, check);
  }
  if (written.action) rewriteTexts(WorkflowActionSchema, written.action, "action", check);
  if (written.report) rewriteTexts(WorkflowActionSchema, written.report, "report", check);
}

/** The parts of a workflow that an execution copies. */
export interface RenderedTemplate {
  readonly action?: WorkflowAction | undefined;
  readonly report?: WorkflowAction | undefined;
  readonly context: WorkflowTriggerContext;
  /** JSON path of the context: `triggers[0].context` or `contextOverride`. */
  readonly contextPath: string;
  /** Parameters that the workflow declares; a default is the value where a start gives none. */
  readonly declared?: readonly WorkflowParameter[];
}

/** The parts that an execution copies, with parameters inserted; parts without parameters are the workflow's own. */
export interface RenderedWorkflow {
  readonly action: WorkflowAction | undefined;
  readonly report: WorkflowAction | undefined;
  readonly context: WorkflowTriggerContext;
  /**
   * Variables for the environment of the commands, by name: values reach commands in no other way.
   */
  readonly environment: Readonly<Record<string, string>>;
  /** Keys that the start gave and no expression uses, sorted. */
  readonly unusedKeys: readonly string[];
  /** True when any expression was replaced: the parts may be larger than the workflow's. */
  readonly hasParameters: boolean;
}

/**
 * Returns the parts of a workflow with parameters in place of their expressions.
 * @param parameters at most 10 values by key, as StartWorkflowRequest.parameters takes them
 * @param missing creates the error for an expression whose key is not given and has no default
 * @throws DomainError VALUE_UNUSABLE, naming the place, for such an expression, for a text that its
 * field does not allow once values are inserted, and as {@link checkWorkflowParameters} does
 */
export function renderWorkflow(
  { action, report, context, contextPath, declared = [] }: RenderedTemplate,
  parameters: Readonly<Record<string, string>>,
  missing: (key: string, path: string) => Error = parameterMissing,
): RenderedWorkflow {
  const values = new Map([...defaultsOf(declared), ...Object.entries(parameters)]);
  const used = new Set<string>();
  const environment: Record<string, string> = {};
  const value = (key: string, path: string): string => {
    const text = values.get(key);
    if (text === undefined) throw missing(key, path);
    used.add(key);
    return text;
  };
  const refer = (key: string, path: string): void => {
    environment[parameterVariable(key)] = value(key, path);
  };
  const render: VisitText = (text) => renderText(text, { value, refer });

  const parts = {
    action: action && withRewrittenTexts(WorkflowActionSchema, action, "action", render),
    report: report && withRewrittenTexts(WorkflowActionSchema, report, "report", render),
    context: withRewrittenTexts(WorkflowTriggerContextSchema, context, contextPath, render),
  };
  const unusedKeys = Object.keys(parameters)
    .filter((key) => !used.has(key))
    .sort();
  return { ...parts, environment, unusedKeys, hasParameters: used.size > 0 };
}

/**
 * Returns the keys, sorted, that expressions use and that have neither a value nor a default.
 * @throws DomainError VALUE_UNUSABLE for an expression that {@link checkWorkflowParameters} refuses
 */
export function missingKeys(
  { action, report, context, contextPath, declared = [] }: RenderedTemplate,
  parameters: Readonly<Record<string, string>>,
): string[] {
  const known = new Set([...defaultsOf(declared).map(([key]) => key), ...Object.keys(parameters)]);
  const missing = new Set<string>();
  const visit: VisitText = (text) => {
    for (const key of keysOfText(text)) if (!known.has(key)) missing.add(key);
    return text.text;
  };
  if (action) rewriteTexts(WorkflowActionSchema, clone(WorkflowActionSchema, action), "action", visit);
  if (report) rewriteTexts(WorkflowActionSchema, clone(WorkflowActionSchema, report), "report", visit);
  const copy = clone(WorkflowTriggerContextSchema, context);
  rewriteTexts(WorkflowTriggerContextSchema, copy, contextPath, visit);
  return [...missing].sort();
}

/**
 * Requires that each time and pull-request trigger can start the workflow: nobody provides
 * parameters then, so the defaults must be sufficient.
 * @throws DomainError VALUE_UNUSABLE, naming the place that needs a parameter without a default, or
 * that does not allow the default
 */
export function requireDefaults({ triggers, action, report, parameters }: Workflow_Spec): void {
  let steps: Pick<RenderedTemplate, "action" | "report"> = { action, report };
  for (const [index, { trigger, context }] of triggers.entries()) {
    if (trigger.case === "manual" || trigger.case === undefined || !context) continue;
    const template = { ...steps, context, contextPath: `triggers[${index}].context`, declared: parameters };
    renderWorkflow(template, {}, (key, path) =>
      valueUnusable(
        path,
        `${path} uses the parameter ${key}, which triggers[${index}].${trigger.case} cannot give: ` +
          "declare it in parameters with a defaultValue",
      ),
    );
    // The steps are the same for every trigger.
    steps = {};
  }
}

function defaultsOf(declared: readonly WorkflowParameter[]): [key: string, value: string][] {
  return declared.flatMap(({ key, defaultValue }) =>
    defaultValue === undefined ? [] : [[key, defaultValue]],
  );
}

function parameterMissing(key: string, path: string): Error {
  return valueUnusable(
    path,
    `${path} uses the parameter ${key}, which is not given and has no default: ` +
      `start the workflow with parameters.${key}`,
  );
}

import type { DescField } from "@bufbuild/protobuf";
import {
  WorkflowStep_AgentSchema,
  WorkflowStep_PullRequestSchema,
  WorkflowStep_TaskSchema,
  WorkflowTriggerContext_AgentSchema,
} from "#gen/service/v1/workflow_pb.js";
import { valueUnusable } from "../../error.ts";
import type { MessageText } from "../../message-texts.ts";
import { branchNameProblem } from "../../source/git-branch-name.ts";
import { meansParameter, parameterExpressions, replaceExpressions } from "./parameter-expression.ts";
import { withReferences } from "./parameter-reference.ts";

/** A place that can carry parameter expressions. */
type ParameterPosition =
  | { readonly kind: "command" }
  | {
      readonly kind: "text" | "branch";
      /** How many characters it has with its parameters in it: what the contract allows without them. */
      readonly least: number;
      readonly most: number;
    };

const PROMPT: ParameterPosition = { kind: "text", least: 1, most: 20_000 };

/** The six places of the interface specification (StartWorkflow), and the limits of their fields. */
const PLACES: ReadonlyMap<DescField, ParameterPosition> = new Map<DescField, ParameterPosition>([
  [WorkflowStep_TaskSchema.field.command, { kind: "command" }],
  [WorkflowStep_AgentSchema.field.prompt, PROMPT],
  [WorkflowStep_PullRequestSchema.field.title, { kind: "text", least: 1, most: 500 }],
  [WorkflowStep_PullRequestSchema.field.description, { kind: "text", least: 0, most: 20_000 }],
  [WorkflowStep_PullRequestSchema.field.branch, { kind: "branch", least: 1, most: 255 }],
  [WorkflowTriggerContext_AgentSchema.field.prompt, PROMPT],
]);

/**
 * Checks one text of a workflow as it is written, before any value is known.
 *
 * @throws DomainError VALUE_UNUSABLE for an expression that is malformed or stands where it cannot be
 *   carried out, and for a branch name that git refuses whatever its parameters are
 */
export function checkText({ text, path, field }: MessageText): void {
  const place = PLACES.get(field);
  if (!place) requireNoExpressions(text, path);
  else if (place.kind === "command") withReferences(text, path);
  else {
    const expressions = parameterExpressions(text, path);
    // No rule of git is broken by a letter that some other value would keep.
    if (place.kind === "branch")
      checkBranch(
        replaceExpressions(text, expressions, () => "x"),
        path,
      );
  }
}

/** What the rendering of a text asks for. */
export interface ParameterSource {
  /** The value of a key, for a text at this JSON path; it throws for a key without one. */
  value(key: string, path: string): string;
  /** Told of each key that a command refers to. */
  refer(key: string, path: string): void;
}

/**
 * One text of a workflow as an execution gets it. Values go in as they are and
 * are not read again; a command gets references to environment variables.
 *
 * @throws DomainError VALUE_UNUSABLE as {@link checkText} does, and when the field does not allow what
 *   comes out; what the source throws
 */
export function renderText({ text, path, field }: MessageText, source: ParameterSource): string {
  const place = PLACES.get(field);
  if (!place) {
    requireNoExpressions(text, path);
    return text;
  }
  if (place.kind === "command") {
    const { command, keys } = withReferences(text, path);
    for (const key of keys) source.refer(key, path);
    return command;
  }
  const rendered = replaceExpressions(text, parameterExpressions(text, path), ({ key }) =>
    source.value(key, path),
  );
  const characters = [...rendered].length;
  if (characters < place.least || characters > place.most) {
    throw valueUnusable(
      path,
      `${path} has ${characters} characters with its parameters in it; it must have ${place.least} to ${place.most}`,
    );
  }
  if (place.kind === "branch") checkBranch(rendered, path);
  return rendered;
}

/** @throws DomainError VALUE_UNUSABLE for an expression in a text that carries none */
export function requireNoExpressions(text: string, path: string): void {
  if (!meansParameter(text)) return;
  throw valueUnusable(
    path,
    `${path} has a parameter expression, which can stand only in task.command, agent.prompt, ` +
      "pullRequest.title, pullRequest.description, pullRequest.branch and a trigger context's agent.prompt",
  );
}

function checkBranch(name: string, path: string): void {
  const problem = branchNameProblem(name);
  if (problem !== undefined) throw valueUnusable(path, `${path}: git allows no branch name that ${problem}`);
}

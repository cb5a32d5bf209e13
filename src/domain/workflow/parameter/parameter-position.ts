import type { DescField } from "@bufbuild/protobuf";
import {
  WorkflowStep_AgentSchema,
  WorkflowStep_ApprovalSchema,
  WorkflowStep_PullRequestSchema,
  WorkflowStep_TaskSchema,
  WorkflowTriggerContext_AgentSchema,
} from "#gen/service/v1/workflow_pb.js";
import { valueUnusable } from "../../error.ts";
import { branchNameProblem } from "../../source/git-branch-name.ts";
import type { MessageText } from "../../text/message-texts.ts";
import { hasParameterExpression, parameterExpressions, replaceExpressions } from "./parameter-expression.ts";
import { withReferences } from "./parameter-reference.ts";

/** A field whose text may contain parameter expressions. */
type ParameterPosition =
  | { readonly kind: "command" }
  | {
      readonly kind: "text" | "branch";
      /**
       * Minimum and maximum length in characters with its parameters inserted, as the contract
       * limits the field.
       */
      readonly min: number;
      readonly max: number;
    };

const PROMPT: ParameterPosition = { kind: "text", min: 1, max: 20_000 };

/** The seven fields that may contain expressions (contract, StartWorkflow), and their limits. */
const POSITIONS: ReadonlyMap<DescField, ParameterPosition> = new Map<DescField, ParameterPosition>([
  [WorkflowStep_TaskSchema.field.command, { kind: "command" }],
  [WorkflowStep_AgentSchema.field.prompt, PROMPT],
  [WorkflowStep_PullRequestSchema.field.title, { kind: "text", min: 1, max: 500 }],
  [WorkflowStep_PullRequestSchema.field.description, { kind: "text", min: 0, max: 20_000 }],
  [WorkflowStep_PullRequestSchema.field.branch, { kind: "branch", min: 1, max: 255 }],
  [WorkflowStep_ApprovalSchema.field.message, { kind: "text", min: 1, max: 4_096 }],
  [WorkflowTriggerContext_AgentSchema.field.prompt, PROMPT],
]);

/**
 * Checks one text of a workflow as it is written, before any value is known.
 * @throws DomainError VALUE_UNUSABLE for an expression that is malformed or in an unsupported
 * position, and for a branch name that git rejects whatever its parameters are
 */
export function checkText({ text, path, field }: MessageText): void {
  const position = POSITIONS.get(field);
  if (!position) requireNoExpressions(text, path);
  else if (position.kind === "command") withReferences(text, path);
  else {
    const expressions = parameterExpressions(text, path);
    // A letter takes the place of each value: it violates no git rule that another value would satisfy.
    if (position.kind === "branch")
      checkBranch(
        replaceExpressions(text, expressions, () => "x"),
        path,
      );
  }
}

/** The source of the values for a text. */
export interface ParameterSource {
  /** Returns the value of a key, for a text at this JSON path; throws for a key without one. */
  value(key: string, path: string): string;
  /** Records each key that a command refers to. */
  refer(key: string, path: string): void;
}

/**
 * Returns one text of a workflow with its parameters inserted, for an execution. Values are
 * inserted as they are and are not parsed again; a command gets references to environment
 * variables.
 * @throws DomainError VALUE_UNUSABLE as {@link checkText} does, and when the field does not allow
 * the result; the errors of the source
 */
export function renderText({ text, path, field }: MessageText, source: ParameterSource): string {
  const position = POSITIONS.get(field);
  if (!position) {
    requireNoExpressions(text, path);
    return text;
  }
  if (position.kind === "command") {
    const { command, keys } = withReferences(text, path);
    for (const key of keys) source.refer(key, path);
    return command;
  }
  const rendered = replaceExpressions(text, parameterExpressions(text, path), ({ key }) =>
    source.value(key, path),
  );
  const characters = [...rendered].length;
  if (characters < position.min || characters > position.max) {
    throw valueUnusable(
      path,
      `${path} has ${characters} characters with its parameters in it; it must have ${position.min} to ${position.max}`,
    );
  }
  if (position.kind === "branch") checkBranch(rendered, path);
  return rendered;
}

/**
 * Returns the keys that one text of a workflow uses.
 * @throws DomainError VALUE_UNUSABLE as {@link checkText} does
 */
export function keysOfText({ text, path, field }: MessageText): readonly string[] {
  const position = POSITIONS.get(field);
  if (!position) {
    requireNoExpressions(text, path);
    return [];
  }
  if (position.kind === "command") return withReferences(text, path).keys;
  return parameterExpressions(text, path).map(({ key }) => key);
}

/**
 * Requires that a text has no expressions.
 * @throws DomainError VALUE_UNUSABLE
 */
export function requireNoExpressions(text: string, path: string): void {
  if (!hasParameterExpression(text)) return;
  throw valueUnusable(
    path,
    `${path} has a parameter expression, which is allowed only in task.command, agent.prompt, ` +
      "pullRequest.title, pullRequest.description, pullRequest.branch, approval.message and a trigger context's agent.prompt",
  );
}

function checkBranch(name: string, path: string): void {
  const problem = branchNameProblem(name);
  if (problem !== undefined) throw valueUnusable(path, `${path}: git allows no branch name that ${problem}`);
}

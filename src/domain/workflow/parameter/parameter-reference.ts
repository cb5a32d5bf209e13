import { valueUnusable } from "../../error.ts";
import { type ShellQuoting, shellQuotings } from "../shell/shell-position.ts";
import { parameterExpressions, replaceExpressions } from "./parameter-expression.ts";

/**
 * Maximum length of a command, before and after its references are inserted (contract,
 * WorkflowStep.Task).
 */
const COMMAND_MAX_CHARACTERS = 20_000;

/** A reference that expands to exactly the value, and does not change the quoting around it. */
const REFERENCE: Readonly<Record<ShellQuoting, (variable: string) => string>> = {
  unquoted: (variable) => `"\${${variable}}"`,
  doubleQuoted: (variable) => `\${${variable}}`,
  singleQuoted: (variable) => `'"\${${variable}}"'`,
};

/**
 * Returns the name of the environment variable that passes a parameter to the commands that use it.
 */
export function parameterVariable(key: string): string {
  return `CHARTROOM_PARAMETER_${key}`;
}

/** A command that reads its parameters from the environment. */
export interface ReferringCommand {
  readonly command: string;
  /** Distinct keys whose variables it refers to, in the order of their first use. */
  readonly keys: readonly string[];
}

/**
 * Returns the command with a reference to an environment variable in place of each expression, so
 * that no value ever becomes a part of its text.
 *
 * A program that the command itself passes on (`eval`, `sh -c`, `trap`, `ssh`, `awk '...'`) is
 * parsed by its receiver, including the values in it.
 * @param field JSON path of the command, for the error
 * @throws DomainError VALUE_UNUSABLE for a malformed expression, and for one where sh could not
 * substitute it as data; this depends on the command alone and never on a value
 */
export function withReferences(command: string, field: string): ReferringCommand {
  const expressions = parameterExpressions(command, field);
  if (expressions.length === 0) return { command, keys: [] };
  const quotings = shellQuotings(command, expressions);
  if ("problem" in quotings) {
    const { expression, problem } = quotings;
    const what = expression ? `{{ .Parameters.${expression.key} }} is` : "the command ends";
    throw valueUnusable(field, `${field} cannot carry its parameters: ${what} ${problem}`);
  }
  const reference = replaceExpressions(command, expressions, (expression) => {
    const quoting = quotings.get(expression);
    if (!quoting) throw new Error("an expression was read past without its place");
    return REFERENCE[quoting](parameterVariable(expression.key));
  });
  if ([...reference].length > COMMAND_MAX_CHARACTERS) {
    throw valueUnusable(
      field,
      `${field} has more than ${COMMAND_MAX_CHARACTERS} characters once its expressions are references to environment variables: shorten it`,
    );
  }
  return { command: reference, keys: [...new Set(expressions.map(({ key }) => key))] };
}

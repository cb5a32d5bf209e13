import { valueUnusable } from "../../error.ts";

/** An occurrence of `{{ .Parameters.<key> }}` in a text. */
export interface ParameterExpression {
  readonly key: string;
  /** Offset of its beginning, in UTF-16 units from the start of the text. */
  readonly start: number;
  /** Offset of the text after it, in the same units. */
  readonly end: number;
}

/** Maximum length of a key in characters (contract, StartWorkflowRequest.parameters). */
const KEY_MAX_CHARACTERS = 128;

/**
 * Text that can only be meant as an expression. Every other `{{` belongs to another template
 * language, as in `docker ps --format '{{.ID}}'`.
 */
const EXPRESSION_START = /\{\{\s*\.Parameters(?![a-zA-Z0-9_])/g;

const WELL_FORMED = /\{\{[ \t]*\.Parameters\.([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*\}\}/y;

/**
 * Returns the parameter expressions of a text, in their order. Between the braces only spaces and
 * tabs may surround `.Parameters.<key>`, any number of them.
 * @param field JSON path of the text, for the error
 * @throws DomainError VALUE_UNUSABLE for the first malformed expression
 */
export function parameterExpressions(text: string, field: string): ParameterExpression[] {
  const expressions: ParameterExpression[] = [];
  for (const { index: start } of text.matchAll(EXPRESSION_START)) {
    WELL_FORMED.lastIndex = start;
    const [whole, key] = WELL_FORMED.exec(text) ?? [];
    if (whole === undefined || key === undefined || key.length > KEY_MAX_CHARACTERS) {
      throw valueUnusable(
        field,
        `${field} has a malformed parameter expression at character ${[...text.slice(0, start)].length + 1}: ` +
          `${problem(text.slice(start))}; write {{ .Parameters.<key> }}`,
      );
    }
    expressions.push({ key, start, end: start + whole.length });
  }
  return expressions;
}

/** Returns whether a text has a parameter expression, well formed or not. */
export function hasParameterExpression(text: string): boolean {
  return text.search(EXPRESSION_START) >= 0;
}

/** Returns the text with each of its expressions replaced; replacements are not parsed again. */
export function replaceExpressions(
  text: string,
  expressions: readonly ParameterExpression[],
  replacement: (expression: ParameterExpression) => string,
): string {
  let replaced = "";
  let end = 0;
  for (const expression of expressions) {
    replaced += text.slice(end, expression.start) + replacement(expression);
    end = expression.end;
  }
  return replaced + text.slice(end);
}

function problem(malformed: string): string {
  const named = malformed.slice(malformed.indexOf(".Parameters") + ".Parameters".length);
  if (!named.startsWith(".")) return "it names no key";
  const [key] = /^[a-zA-Z_][a-zA-Z0-9_]*/.exec(named.slice(1)) ?? [];
  if (key === undefined) return "the key must match ^[a-zA-Z_][a-zA-Z0-9_]*$";
  if (key.length > KEY_MAX_CHARACTERS) return `the key has more than ${KEY_MAX_CHARACTERS} characters`;
  return "only spaces and tabs are allowed between {{, .Parameters.<key> and }}";
}

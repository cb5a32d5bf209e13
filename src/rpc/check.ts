import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { createValidator, type ValidatorOptions, type Violation } from "@bufbuild/protovalidate";
import type { Interceptor } from "@connectrpc/connect";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { DomainError } from "../domain/error.ts";
import { requireDurations } from "./durations.ts";
import { inWords } from "./error/rule-words.ts";
import { parsedRequestKey } from "./request/parsed-request.ts";

/** Maximum number of violations in an error; without it a request with a hundred bad elements would list them all. */
export const MAX_VIOLATIONS = 20;

/** A request that breaks rules of the contract. */
export class ConstraintViolated extends DomainError {
  /** The first violations, at most {@link MAX_VIOLATIONS}. */
  readonly violations: readonly Violation[];

  constructor(violations: readonly Violation[]) {
    const reported = violations.slice(0, MAX_VIOLATIONS);
    const more = violations.length - reported.length;
    // The message begins with the rule's own text, which clients and people look for.
    const message = reported.map((violation) => `${violation.message} [${pathText(violation)}]`).join("; ");
    super(ErrorReason.CONSTRAINT_VIOLATED, more > 0 ? `${message}; and ${more} more` : message, {
      violations: String(violations.length),
    });
    this.violations = reported;
  }
}

export type Check = <D extends DescMessage>(schema: D, message: MessageShape<D>) => void;

/**
 * Creates the check of messages against the rules of the contract. A rule that
 * cannot be evaluated is an internal error, not the caller's.
 */
export function createCheck(options?: ValidatorOptions): Check {
  const validator = createValidator(options);
  return (schema, message) => {
    const result = validator.validate(schema, message);
    if (result.kind === "error") throw result.error;
    if (result.kind === "invalid")
      throw new ConstraintViolated(withoutRepeats(result.violations).map(inWords));
    requireDurations(schema, message);
  };
}

/**
 * Leaves out the violation of a standard length rule when a CEL rule of the same field expresses the same bound with
 * the specification's text. The standard rule is there for programs that read the contract.
 */
function withoutRepeats(violations: readonly Violation[]): readonly Violation[] {
  const said = new Set(
    violations.filter(({ ruleId }) => /_(length|count)$/.test(ruleId)).map((each) => pathText(each)),
  );
  if (said.size === 0) return violations;
  return violations.filter((each) => !STANDARD_BOUNDS.has(each.ruleId) || !said.has(pathText(each)));
}

const STANDARD_BOUNDS: ReadonlySet<string> = new Set(["string.max_len", "repeated.max_items"]);

/**
 * Checks every message of a request before its operation gets it, unless it was
 * already checked when it was parsed.
 */
export function checkRequests(check: Check): Interceptor {
  return (next) => (req) => {
    if (req.stream) return next({ ...req, message: checked(check, req.method.input, req.message) });
    if (req.contextValues.get(parsedRequestKey) === undefined) check(req.method.input, req.message);
    return next(req);
  };
}

async function* checked<D extends DescMessage>(
  check: Check,
  schema: D,
  messages: AsyncIterable<MessageShape<D>>,
): AsyncIterable<MessageShape<D>> {
  for await (const message of messages) {
    check(schema, message);
    yield message;
  }
}

/** Returns the path of the field in JSON names, such as `projects[3].metadata.annotations["team"]`. */
function pathText({ field }: Violation): string {
  let text = "";
  for (const part of field) {
    if (part.kind === "field") text += text ? `.${part.jsonName}` : part.jsonName;
    else if (part.kind === "oneof") text += text ? `.${part.localName}` : part.localName;
    else if (part.kind === "list_sub") text += `[${part.index}]`;
    else if (part.kind === "map_sub") text += `[${JSON.stringify(part.key)}]`;
  }
  return text || "request";
}

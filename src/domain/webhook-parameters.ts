import type { WorkflowParameter } from "#gen/service/v1/workflow_pb.js";
import { valueUnusable } from "./error.ts";
import { isJsonObject, valueProblem } from "./webhook-body.ts";
import type { WebhookReading } from "./webhook-reading.ts";

/**
 * Returns the parameters of a start by a webhook: those that the delivery
 * gives, and those that the workflow takes from fields of its body.
 *
 * @throws DomainError VALUE_UNUSABLE for a text there that no parameter takes
 */
export function webhookParameters(
  declared: readonly WorkflowParameter[],
  { parameters, body }: Pick<Extract<WebhookReading, { kind: "manual" }>, "parameters" | "body">,
): Record<string, string> {
  const values = new Map<string, string>();
  for (const { key, payloadField } of declared) {
    const text = payloadField === "" ? undefined : textAt(body, payloadField);
    if (text === undefined || Object.hasOwn(parameters, key)) continue;
    const problem = valueProblem(text);
    if (problem !== undefined) {
      throw valueUnusable(`parameters.${key}`, `${payloadField} of the body, which gives ${key}, ${problem}`);
    }
    values.set(key, text);
  }
  return Object.fromEntries([...values, ...Object.entries(parameters)]);
}

/** Texts as they are, numbers and truth values as JSON writes them; nothing else is a value. */
function textAt(body: unknown, path: string): string | undefined {
  let value = body;
  for (const name of path.split(".")) {
    if (!isJsonObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
}

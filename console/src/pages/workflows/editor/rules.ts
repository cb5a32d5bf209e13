import { pathToString } from "@bufbuild/protobuf/reflect";
import { createValidator } from "@bufbuild/protovalidate";
import { CreateWorkflowRequestSchema } from "#gen/service/v1/workflow_service_pb.js";
import type { Draft } from "./draft.ts";

const validator = createValidator();

/** The sentences of the rules that a draft breaks, by the paths of their fields. */
export type Breaches = ReadonlyMap<string, readonly string[]>;

/**
 * Returns what the contract itself says against a draft, by the rules that the server has. Loaded when an editor opens:
 * it is larger than all the rest of the page.
 */
export function breachesOf(draft: Draft): Breaches {
  const { kind, violations, error } = validator.validate(CreateWorkflowRequestSchema, draft);
  if (kind === "error") throw error;
  const breaches = new Map<string, string[]>();
  for (const { field, message } of violations ?? []) {
    const path = pathToString(field);
    breaches.set(path, [...(breaches.get(path) ?? []), message]);
  }
  return breaches;
}

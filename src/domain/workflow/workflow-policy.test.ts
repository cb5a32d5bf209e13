import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { OrganizationPoliciesSchema } from "#gen/service/v1/organization_pb.js";
import { WorkflowTriggerContextSchema } from "#gen/service/v1/workflow_pb.js";
import { effectivePolicies } from "../policy/policies.ts";
import type { PolicyDenied } from "../policy/policy-decision.ts";
import { requireContextAllowed } from "./workflow-policy.ts";

const policies = (set: MessageInitShape<typeof OrganizationPoliciesSchema>) =>
  effectivePolicies("0190c0de-0000-7000-8000-000000000000", {
    policies: create(OrganizationPoliciesSchema, set),
    origins: {},
  });

/** Returns the field of the policy that denies; undefined when none does. */
function denied(act: () => void) {
  try {
    act();
    return undefined;
  } catch (error) {
    return (error as PolicyDenied).decision.fieldPath;
  }
}

describe("a context without code", () => {
  const agent = create(WorkflowTriggerContextSchema, { context: { case: "agent", value: { prompt: "x" } } });
  const projects = create(WorkflowTriggerContextSchema, { context: { case: "projects", value: {} } });

  test("is for administrators where nothing starts from scratch", () => {
    const set = policies({ disableFromScratch: true });
    for (const role of ["member", "service_account"] as const) {
      expect(denied(() => requireContextAllowed(set, agent, role))).toBe("disableFromScratch");
      expect(denied(() => requireContextAllowed(set, projects, role))).toBeUndefined();
      expect(denied(() => requireContextAllowed(policies({}), agent, role))).toBeUndefined();
    }
    expect(denied(() => requireContextAllowed(set, agent, "administrator"))).toBeUndefined();
  });
});

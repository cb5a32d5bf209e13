import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "@jest/globals";
import { PoliciesSchema } from "#gen/runner/v1/work_pb.js";
import {
  type EnvironmentMetadataSchema,
  EnvironmentPhase,
  EnvironmentSchema,
  KernelControlsAction,
} from "#gen/service/v1/environment_pb.js";
import { ForkEgress } from "#gen/service/v1/fork_work_pb.js";
import { RunnerPolicy as Policy } from "#gen/service/v1/runner_pb.js";
import { SecurityPolicy_Effect as Effect } from "#gen/service/v1/security_pb.js";
import {
  neededPolicies,
  offeredTo,
  policiesWithout,
  policySet,
  supportedPoliciesOf,
} from "./kept-policies.ts";

const { RUNNING, STOPPED } = EnvironmentPhase;
const environment = (
  metadata: MessageInitShape<typeof EnvironmentMetadataSchema> = {},
  desiredPhase: EnvironmentPhase = RUNNING,
) => create(EnvironmentSchema, { metadata, spec: { desiredPhase } });
const needs = (policies: MessageInitShape<typeof PoliciesSchema>, of = environment()) =>
  neededPolicies(create(PoliciesSchema, policies), of);
const executables = ["curl"];

test.each<[string, MessageInitShape<typeof PoliciesSchema>, Policy[]]>([
  ["nothing", {}, []],
  ["a policy that is off", { vetoExecPolicy: { executables } }, []],
  ["a veto of executables", { vetoExecPolicy: { enabled: true, executables } }, [Policy.VETO_EXEC]],
  [
    "an audit of executables",
    { vetoExecPolicy: { enabled: true, executables, action: KernelControlsAction.AUDIT } },
    [Policy.VETO_EXEC_AUDIT],
  ],
  [
    "a veto of a file",
    { vetoFilePolicy: { enabled: true, paths: { entries: [{ path: "/etc/passwd" }] } } },
    [Policy.VETO_FILE],
  ],
  [
    "a veto of a relative path",
    { vetoFilePolicy: { enabled: true, paths: { entries: [{ path: ".env" }] } } },
    [Policy.VETO_FILE_AUDIT],
  ],
  [
    "a security policy that blocks",
    { securityPolicy: { spec: { executables: { rules: [{ path: "curl", effect: Effect.BLOCK }] } } } },
    [Policy.SECURITY_POLICY],
  ],
  [
    "a security policy that logs",
    { securityPolicy: { spec: { executables: { rules: [{ path: "curl", effect: Effect.AUDIT }] } } } },
    [Policy.SECURITY_POLICY_AUDIT],
  ],
  ["agents", { securityAgentPolicy: { customAgents: [{ enabled: true }] } }, [Policy.SECURITY_AGENTS]],
  [
    "an image and hosts",
    { defaultEnvironmentImage: "x", egress: {} },
    [Policy.ENVIRONMENT_IMAGE, Policy.EGRESS],
  ],
])("%s is needed of a runner as it says it", (_, policies, expected) => {
  expect(needs(policies)).toBe(policySet(expected));
});

test("a pull request from a fork is needed, and its hosts where they are limited", () => {
  const egressOf = (forkEgress: ForkEgress) => needs({}, environment({ secretsWithheld: true, forkEgress }));
  expect(needs({}, environment({ secretsWithheld: true }))).toBe(policySet([Policy.FORK_WORK]));
  expect(egressOf(ForkEgress.POLICY)).toBe(policySet([Policy.FORK_WORK]));
  expect(egressOf(ForkEgress.SOURCES)).toBe(policySet([Policy.FORK_WORK, Policy.FORK_EGRESS]));
  expect(needs({}, environment({ secretsWithheld: false }))).toBe(0);
  // That of an action says nothing where an earlier release has made it.
  const ofAction = (metadata?: MessageInitShape<typeof EnvironmentMetadataSchema>) =>
    create(EnvironmentSchema, { metadata, spec: { desiredPhase: RUNNING, workflowActionId: "action" } });
  expect(needs({}, ofAction({}))).toBe(policySet([Policy.FORK_WORK]));
  expect(needs({}, ofAction({ secretsWithheld: false }))).toBe(0);
});

test("nothing is needed to stop an environment, or without one", () => {
  const policies = create(PoliciesSchema, { vetoExecPolicy: { enabled: true, executables } });
  expect(neededPolicies(policies, environment({ secretsWithheld: true }, STOPPED))).toBe(0);
  expect(neededPolicies(policies, undefined)).toBe(0);
});

test("a runner that says nothing is offered all but work that a fork began; unknown numbers say nothing", () => {
  const all = policySet([Policy.VETO_EXEC, Policy.EGRESS, Policy.FORK_WORK, Policy.FORK_EGRESS]);
  expect(policiesWithout(all, offeredTo(supportedPoliciesOf(undefined)))).toBe(
    policySet([Policy.FORK_WORK, Policy.FORK_EGRESS]),
  );
  const said = { policies: [Policy.VETO_EXEC, 31 as Policy, 33 as Policy, -1 as Policy] };
  expect(supportedPoliciesOf(said as never)).toBe(policySet([Policy.VETO_EXEC]));
  expect(supportedPoliciesOf({ policies: [] } as never)).toBe(0);
});

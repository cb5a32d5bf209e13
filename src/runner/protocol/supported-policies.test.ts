import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "@jest/globals";
import { PoliciesSchema } from "#gen/runner/v1/work_pb.js";
import { KernelControlsAction } from "#gen/service/v1/environment_pb.js";
import { SecurityPolicy_Effect as Effect } from "#gen/service/v1/security_pb.js";
import { requireSupportedPolicies } from "./supported-policies.ts";

const refused = (init: MessageInitShape<typeof PoliciesSchema>) => {
  try {
    requireSupportedPolicies(create(PoliciesSchema, init));
    return undefined;
  } catch (error) {
    return error;
  }
};
const rules = [{ path: "curl", effect: Effect.AUDIT }];

test.each<[string, MessageInitShape<typeof PoliciesSchema>]>([
  ["vetoExecPolicy", { vetoExecPolicy: { enabled: true, executables: ["curl"] } }],
  [
    "vetoExecPolicy",
    { vetoExecPolicy: { enabled: true, executables: ["curl"], action: KernelControlsAction.AUDIT } },
  ],
  ["vetoFilePolicy", { vetoFilePolicy: { enabled: true, paths: { entries: [{ path: "/etc" }] } } }],
  ["vetoFilePolicy", { vetoFilePolicy: { enabled: true, blockDevices: { enabled: true } } }],
  ["securityPolicyId", { securityPolicy: { spec: { executables: { rules } } } }],
  ["securityAgentPolicy", { securityAgentPolicy: { endpointSecurity: { enabled: true, image: "x" } } }],
  ["securityAgentPolicy", { securityAgentPolicy: { customAgents: [{ id: "1", enabled: true }] } }],
  ["defaultEnvironmentImage", { defaultEnvironmentImage: "registry.example.org/base" }],
])("work under a %s is refused, naming it", (name, policies) => {
  expect(refused(policies)).toMatchObject({
    reason: "policy_unsupported",
    message: expect.stringContaining(` cannot keep ${name}:`),
    retriable: false,
  });
});

test("all that cannot be kept are named", () => {
  expect(
    refused({ defaultEnvironmentImage: "x", vetoExecPolicy: { enabled: true, executables: ["curl"] } }),
  ).toMatchObject({ message: expect.stringContaining("vetoExecPolicy, defaultEnvironmentImage") });
});

test.each<[string, MessageInitShape<typeof PoliciesSchema>]>([
  ["there are none", {}],
  ["they bind agents only", { agentPolicy: { commandDenyList: ["rm"] } }],
  ["those of executables are switched off", { vetoExecPolicy: { executables: ["curl"] } }],
  ["those of executables name none", { vetoExecPolicy: { enabled: true } }],
  ["those of files are switched off", { vetoFilePolicy: { paths: { entries: [{ path: "/etc" }] } } }],
  ["those of files cover none", { vetoFilePolicy: { enabled: true, paths: {}, blockDevices: {} } }],
  ["the security policy has no rule", { securityPolicy: { spec: { executables: {} } } }],
  [
    "no agent is switched on",
    { securityAgentPolicy: { endpointSecurity: { image: "x" }, customAgents: [{ id: "1" }] } },
  ],
])("work is taken when %s", (_, policies) => {
  expect(refused(policies)).toBeUndefined();
});

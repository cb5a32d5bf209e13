import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { PoliciesSchema } from "#gen/runner/v1/work_pb.js";
import {
  KernelControlsAction,
  VetoFileSurface as Surface,
  type VetoFilePathEntrySchema,
} from "#gen/service/v1/environment_pb.js";
import { RunnerPolicy } from "#gen/service/v1/runner_pb.js";
import { SecurityPolicy_Effect as Effect } from "#gen/service/v1/security_pb.js";
import { requireSupportedPolicies, rulesForAgents, supportedPolicies } from "./supported-policies.ts";

const NONE = { name: "none", keepsRules: false } as const;
const BY_PATH = { name: "bubblewrap", keepsRules: true } as const;

const refused = (
  init: MessageInitShape<typeof PoliciesSchema>,
  isolation: typeof NONE | typeof BY_PATH = NONE,
) => {
  try {
    requireSupportedPolicies(create(PoliciesSchema, init), isolation);
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

describe("a class that denies paths", () => {
  const rulesOf = (init: MessageInitShape<typeof PoliciesSchema>) =>
    requireSupportedPolicies(create(PoliciesSchema, init), BY_PATH);
  const files = (...entries: MessageInitShape<typeof VetoFilePathEntrySchema>[]) => ({
    vetoFilePolicy: { enabled: true, paths: { entries } },
  });

  test("keeps executables that a policy denies, without those that cannot be", () => {
    const executables = ["curl", "/usr/bin/nc", "sh"];
    expect(rulesOf({ vetoExecPolicy: { enabled: true, executables, safelist: ["sh"] } })).toEqual({
      executables: ["curl", "/usr/bin/nc"],
      denied: [],
      readOnly: [],
    });
  });

  test("keeps files and devices", () => {
    const entries = [
      { path: "/etc/a" },
      { path: "/etc/b", surface: Surface.CONTENT_MUTATION },
      { path: "/etc/c", surface: Surface.ACCESS, effect: KernelControlsAction.BLOCK },
    ];
    const paths = { entries, defaultEffect: KernelControlsAction.UNSPECIFIED };
    const policy = { enabled: true, paths, blockDevices: { enabled: true } };
    expect(rulesOf({ vetoFilePolicy: policy })).toEqual({
      executables: [],
      denied: ["/etc/a", "/etc/c"],
      readOnly: ["/etc/b"],
    });
    const ofDefault = { ...paths, defaultSurface: Surface.CONTENT_MUTATION };
    expect(rulesOf({ vetoFilePolicy: { enabled: true, paths: ofDefault } })).toMatchObject({
      denied: ["/etc/c"],
      readOnly: ["/etc/a", "/etc/b"],
    });
  });

  test("keeps the rules of a security policy, the first of each program", () => {
    const blocked = [
      { path: "curl", effect: Effect.BLOCK },
      { path: "curl", effect: Effect.AUDIT },
    ];
    const { executables } = rulesOf({ securityPolicy: { spec: { executables: { rules: blocked } } } });
    expect(executables).toEqual(["curl"]);
  });

  test.each<[string, MessageInitShape<typeof PoliciesSchema>]>([
    [
      "vetoExecPolicy",
      { vetoExecPolicy: { enabled: true, executables: ["a"], action: KernelControlsAction.AUDIT } },
    ],
    ["vetoFilePolicy", files({ path: "relative" })],
    ["vetoFilePolicy", files({ path: "/" })],
    ["vetoFilePolicy", files({ path: "/a", effect: KernelControlsAction.AUDIT })],
    ["vetoFilePolicy", files({ path: "/a", surface: Surface.CONTENT_READ })],
    ["vetoFilePolicy", files({ path: "/a" }, { path: "/b", trackChanges: true })],
    [
      "vetoFilePolicy",
      {
        vetoFilePolicy: {
          enabled: true,
          blockDevices: { enabled: true, action: KernelControlsAction.AUDIT },
        },
      },
    ],
    ["securityPolicyId", { securityPolicy: { spec: { executables: { rules } } } }],
    ["securityAgentPolicy", { securityAgentPolicy: { customAgents: [{ id: "1", enabled: true }] } }],
    ["defaultEnvironmentImage", { defaultEnvironmentImage: "registry.example.org/base" }],
  ])("refuses a %s that is not kept by paths", (name, policies) => {
    expect(refused(policies, BY_PATH)).toMatchObject({
      reason: "policy_unsupported",
      message: expect.stringContaining(` cannot keep ${name}:`),
    });
  });

  test("keeps agents from programs that their list names, as far as it names programs", () => {
    const commandDenyList = [" rm ", "git push", "/usr/bin/nc", "sh", "", "a/b"];
    const policies = create(PoliciesSchema, { agentPolicy: { commandDenyList } });
    expect(rulesForAgents(policies, BY_PATH).executables).toEqual(["rm", "/usr/bin/nc"]);
    expect(requireSupportedPolicies(policies, BY_PATH).executables).toEqual([]);
  });
});

test("containers run work in the image of its organization, and keep no rules about files", () => {
  const container = { name: "container", keepsRules: false } as const;
  expect(supportedPolicies(container)).toContain(RunnerPolicy.ENVIRONMENT_IMAGE);
  const inImage = create(PoliciesSchema, { defaultEnvironmentImage: "registry.example.org/base" });
  expect(requireSupportedPolicies(inImage, container)).toEqual({ executables: [], denied: [], readOnly: [] });
  const denied = create(PoliciesSchema, { vetoExecPolicy: { enabled: true, executables: ["curl"] } });
  expect(() => requireSupportedPolicies(denied, container)).toThrow(/in containers.*vetoExecPolicy/);
});

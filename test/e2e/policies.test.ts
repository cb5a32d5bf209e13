import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import {
  OrganizationService,
  UpdateOrganizationPoliciesRequestSchema,
} from "#gen/service/v1/organization_service_pb.js";
import { reasonOf } from "../harness/call.ts";
import { type OrganizationWithPolicies, organizationWithPolicies } from "../harness/policies.ts";
import {
  type ReachableServer,
  runCommand,
  runHostedCommand,
  startHostedServer,
  stopAll,
} from "../harness/server.ts";

let server: ReachableServer;
let own: OrganizationWithPolicies;
let made = 0;
beforeAll(async () => {
  server = await startHostedServer();
});
beforeEach(async () => {
  made += 1;
  own = await organizationWithPolicies(server, `policies-${made}`);
  const { organizationId } = own;
  const { body } = await own.call("GroupService/CreateGroup", { organizationId, name: "Leads" });
  AGENT_POLICY.scmToolsAllowedGroupId = body.group.id;
});
afterAll(stopAll);

const DEFAULTS = {
  membersRequireProjects: false,
  membersCreateProjects: true,
  allowedEditorIds: [],
  defaultEditorId: "",
  allowLocalRunners: true,
  maximumRunningEnvironmentsPerUser: "0",
  maximumEnvironmentsPerUser: "0",
  defaultEnvironmentImage: "",
  portSharingDisabled: false,
  agentPolicy: {
    mcpDisabled: false,
    commandDenyList: [],
    scmToolsDisabled: false,
    scmToolsAllowedGroupId: "",
    conversationSharingPolicy: "CONVERSATION_SHARING_POLICY_UNSPECIFIED",
    maxSubagentsPerEnvironment: 0,
    allowedAgentIds: [],
    allowedExtAgentReasoningEfforts: [],
    allowedExtAgentServiceTiers: [],
    goalModeDisabled: false,
  },
  requireCustomDomainAccess: false,
  editorVersionRestrictions: {},
  restrictAccountCreationToScim: false,
  maximumEnvironmentLifetimeStrict: false,
  maxPortAdmissionLevel: "ADMISSION_LEVEL_UNSPECIFIED",
  webBrowserDisabled: false,
  disableFromScratch: false,
  securityPolicyId: "",
};

const AGENT_POLICY = {
  mcpDisabled: true,
  commandDenyList: ["rm -rf /"],
  scmToolsDisabled: true,
  // Each organization has a group of its own.
  scmToolsAllowedGroupId: "",
  conversationSharingPolicy: "CONVERSATION_SHARING_POLICY_ORGANIZATION",
  maxSubagentsPerEnvironment: 10,
  allowedAgentIds: ["first"],
  allowedExtAgentReasoningEfforts: ["EXT_AGENT_REASONING_EFFORT_LOW"],
  allowedExtAgentServiceTiers: ["EXT_AGENT_SERVICE_TIER_FAST"],
  goalModeDisabled: true,
  extAgentModelPolicy: { modelStates: { EXT_AGENT_MODEL_1: "EXT_AGENT_MODEL_POLICY_STATE_DISABLED" } },
};

/** A value of its own for every field that can be set in any organization. */
const EVERYTHING = {
  maximumEnvironmentTimeout: "1800s",
  membersRequireProjects: true,
  membersCreateProjects: false,
  allowedEditorIds: ["code", "vim"],
  defaultEditorId: "vim",
  allowLocalRunners: false,
  maximumRunningEnvironmentsPerUser: "3",
  maximumEnvironmentsPerUser: "9",
  defaultEnvironmentImage: "registry.example.org/base:1",
  portSharingDisabled: true,
  deleteArchivedEnvironmentsAfter: "2419200s",
  agentPolicy: AGENT_POLICY,
  maximumEnvironmentLifetime: "15552000s",
  requireCustomDomainAccess: true,
  editorVersionRestrictions: { code: { allowedVersions: ["2026"] } },
  securityAgentPolicy: {
    endpointSecurity: {
      enabled: true,
      image: "registry.example.org/sensor:2",
      customerSecretId: "",
      tags: "a,b",
      additionalOptions: { level: "2" },
    },
    customAgents: [
      {
        id: "watch",
        enabled: true,
        name: "Watch",
        description: "",
        startCommand: "watchd",
        envMappings: [{ name: "KEY", secretName: "watch-key" }],
      },
    ],
  },
  restrictAccountCreationToScim: true,
  vetoExecPolicy: { enabled: true, executables: ["socat"], action: "KERNEL_CONTROLS_ACTION_AUDIT" },
  maximumEnvironmentLifetimeStrict: true,
  maxPortAdmissionLevel: "ADMISSION_LEVEL_ORGANIZATION",
  webBrowserDisabled: true,
  disableFromScratch: true,
  vetoFilePolicy: {
    enabled: true,
    paths: {
      entries: [
        {
          path: "/etc/shadow",
          surface: "VETO_FILE_SURFACE_ACCESS",
          effect: "KERNEL_CONTROLS_ACTION_BLOCK",
          trackChanges: false,
        },
      ],
      defaultSurface: "VETO_FILE_SURFACE_UNSPECIFIED",
      defaultEffect: "KERNEL_CONTROLS_ACTION_UNSPECIFIED",
    },
    blockDevices: { enabled: true, action: "KERNEL_CONTROLS_ACTION_BLOCK" },
  },
  egress: {
    sets: ["EGRESS_HOST_SET_SERVICE", "EGRESS_HOST_SET_MODELS"],
    hosts: [
      { host: "*.Example.org", ports: [] },
      { host: "10.0.0.7", ports: [8_443] },
    ],
    recordAllowed: true,
  },
  retention: {
    executions: { days: 90, count: 1_000 },
    events: { days: 0, count: 0 },
  },
};

describe("the policies of an organization", () => {
  test("are the defaults before anybody sets them, without the fields that have none", async () => {
    expect(await own.policies()).toEqual({ organizationId: own.organizationId, ...DEFAULTS });
  });

  test("can be set all at once and are answered as they were set", async () => {
    expect((await own.update(EVERYTHING)).body).toEqual({});
    const { vetoExecPolicy, ...others } = await own.policies();
    const { vetoExecPolicy: set, ...expected } = EVERYTHING;
    expect(others).toEqual({ organizationId: own.organizationId, securityPolicyId: "", ...expected });
    expect(vetoExecPolicy).toEqual({ ...set, safelist: vetoExecPolicy.safelist });
  });

  test.each(Object.entries(EVERYTHING))("keep every other value when %s is set", async (field, value) => {
    const editors = field === "defaultEditorId" ? { allowedEditorIds: ["vim"] } : {};
    await own.set({ ...editors, [field]: value });
    const { [field]: _, ...others } = await own.policies();
    const { [field]: __, ...expected } = DEFAULTS as Record<string, unknown>;
    expect(others).toEqual({ organizationId: own.organizationId, ...expected, ...editors });
    const set = await own.policies();
    await own.set({});
    expect(await own.policies()).toEqual(set);
  });

  test("are read by members and set by administrators alone", async () => {
    const { organizationId, member } = own;
    const read = await own.call(
      "OrganizationService/GetOrganizationPolicies",
      { organizationId },
      member.token,
    );
    expect([read.status, read.body.policies.organizationId]).toEqual([200, organizationId]);
    const refused = await own.update({ webBrowserDisabled: true }, member.token);
    expect([refused.status, refused.body.code, reasonOf(refused)]).toEqual([
      403,
      "permission_denied",
      "PERMISSION_DENIED",
    ]);
    expect((await own.policies()).webBrowserDisabled).toBe(false);
  });

  test("leave an audit row with what changed, and none when nothing did", async () => {
    const entries = async () => {
      const filter = { subjectTypes: ["RESOURCE_TYPE_ORGANIZATION_POLICY"] };
      const { status, body } = await own.call("EventService/ListAuditLogs", { filter });
      expect(status).toBe(200);
      return body.entries;
    };
    await own.set({ webBrowserDisabled: true, defaultEditorId: "vim" });
    const [entry, ...others] = await entries();
    expect(others).toEqual([]);
    expect(entry).toMatchObject({
      actorId: own.administrator.userId,
      actorPrincipal: "PRINCIPAL_USER",
      action: "service.v1.OrganizationService/UpdateOrganizationPolicies",
      subjectId: own.organizationId,
      changes: [
        { path: "defaultEditorId", after: '"vim"' },
        { path: "webBrowserDisabled", after: "true" },
      ],
    });
    await own.set({ webBrowserDisabled: true });
    await own.set({});
    expect(await entries()).toHaveLength(1);
    await own.set({ updateMask: "defaultEditorId" });
    expect((await entries())[0].changes).toMatchObject([{ path: "defaultEditorId", before: '"vim"' }]);
  });
});

describe("merging", () => {
  test("what agents may do changes field by field", async () => {
    await own.set({ agentPolicy: AGENT_POLICY });
    await own.set({ agentPolicy: { goalModeDisabled: false, maxSubagentsPerEnvironment: 0 } });
    expect((await own.policies()).agentPolicy).toEqual({
      ...AGENT_POLICY,
      goalModeDisabled: false,
      maxSubagentsPerEnvironment: 0,
    });
  });

  test("security agents change field by field, at both depths", async () => {
    await own.set({ securityAgentPolicy: EVERYTHING.securityAgentPolicy });
    await own.set({ securityAgentPolicy: { endpointSecurity: { tags: "c" } } });
    const { endpointSecurity, customAgents } = EVERYTHING.securityAgentPolicy;
    expect((await own.policies()).securityAgentPolicy).toEqual({
      endpointSecurity: { ...endpointSecurity, tags: "c" },
      customAgents,
    });
  });

  test("a message of the stored kind replaces what is stored, an empty one too", async () => {
    await own.set({ vetoExecPolicy: EVERYTHING.vetoExecPolicy, vetoFilePolicy: EVERYTHING.vetoFilePolicy });
    await own.set({ vetoExecPolicy: { enabled: true }, vetoFilePolicy: {} });
    const { vetoExecPolicy, vetoFilePolicy } = await own.policies();
    expect(vetoExecPolicy).toMatchObject({ enabled: true, executables: [] });
    expect(vetoFilePolicy).toEqual({ enabled: false });
  });

  test("an empty list of what isolated work may reach is kept, until the field is named without a value", async () => {
    await own.set({ egress: {} });
    expect((await own.policies()).egress).toEqual({ sets: [], hosts: [], recordAllowed: false });
    await own.set({ updateMask: "egress" });
    expect(await own.policies()).not.toHaveProperty("egress");
  });

  test("a host that nothing could be is refused with its place", async () => {
    const { status, body } = await own.update({
      egress: { hosts: [{ host: "a.example" }, { host: "https://b.example/" }] },
    });
    expect([status, body.code]).toEqual([400, "invalid_argument"]);
    expect(body.message).toContain("egress.hosts[1].host must be a name");
    expect(await own.policies()).not.toHaveProperty("egress");
  });

  test("maps are replaced whole", async () => {
    await own.set({ editorVersionRestrictions: { code: { allowedVersions: ["1"] }, vim: {} } });
    await own.set({ editorVersionRestrictions: { emacs: { allowedVersions: ["30"] } } });
    expect((await own.policies()).editorVersionRestrictions).toEqual({ emacs: { allowedVersions: ["30"] } });
  });
});

describe("clearing", () => {
  const LISTS = {
    allowedEditorIds: ["code"],
    editorVersionRestrictions: { code: { allowedVersions: ["1"] } },
    agentPolicy: { commandDenyList: ["rm"], allowedAgentIds: ["first"] },
    securityAgentPolicy: EVERYTHING.securityAgentPolicy,
  };

  test("an explicit [] or {} in JSON empties a list or map, at any depth and in both spellings", async () => {
    await own.set(LISTS);
    await own.set({
      allowedEditorIds: [],
      editor_version_restrictions: {},
      agentPolicy: { command_deny_list: [] },
      securityAgentPolicy: { endpointSecurity: { additionalOptions: {} } },
    });
    const policies = await own.policies();
    expect([policies.allowedEditorIds, policies.editorVersionRestrictions]).toEqual([[], {}]);
    expect(policies.agentPolicy.commandDenyList).toEqual([]);
    expect(policies.agentPolicy.allowedAgentIds).toEqual(["first"]);
    expect(policies.securityAgentPolicy.endpointSecurity.additionalOptions).toEqual({});
    expect(policies.securityAgentPolicy.customAgents).toHaveLength(1);
  });

  test("null in JSON is the same as nothing", async () => {
    await own.set(LISTS);
    await own.set({ allowedEditorIds: null, agentPolicy: null, updateMask: null });
    const { allowedEditorIds, agentPolicy } = await own.policies();
    expect([allowedEditorIds, agentPolicy.commandDenyList]).toEqual([["code"], ["rm"]]);
  });

  test("a mask in JSON empties lists and maps and takes other fields back to their defaults", async () => {
    await own.set({ ...EVERYTHING });
    await own.set({
      updateMask:
        "allowedEditorIds,defaultEditorId,editorVersionRestrictions,agentPolicy.commandDenyList,agentPolicy.mcpDisabled,maximumEnvironmentTimeout,membersCreateProjects,vetoExecPolicy,securityAgentPolicy.customAgents",
    });
    const policies = await own.policies();
    expect(policies).toMatchObject({
      allowedEditorIds: [],
      defaultEditorId: "",
      editorVersionRestrictions: {},
      membersCreateProjects: true,
    });
    expect(policies.agentPolicy).toEqual({ ...AGENT_POLICY, commandDenyList: [], mcpDisabled: false });
    expect([policies.maximumEnvironmentTimeout, policies.vetoExecPolicy]).toEqual([undefined, undefined]);
    expect(policies.securityAgentPolicy.customAgents).toEqual([]);
  });

  test("a mask takes a whole message back to its default, and what is set with it is set", async () => {
    await own.set({ ...EVERYTHING });
    await own.set({
      agentPolicy: { goalModeDisabled: true },
      updateMask: "agentPolicy,securityAgentPolicy",
    });
    const policies = await own.policies();
    expect(policies.agentPolicy).toEqual({ ...DEFAULTS.agentPolicy, goalModeDisabled: true });
    expect(policies.securityAgentPolicy).toBeUndefined();
  });

  test("a mask never narrows: what is set is replaced, named or not", async () => {
    await own.set({
      maximumEnvironmentsPerUser: "4",
      webBrowserDisabled: true,
      updateMask: "allowedEditorIds",
    });
    expect(await own.policies()).toMatchObject({ maximumEnvironmentsPerUser: "4", webBrowserDisabled: true });
    await own.set({ maximumEnvironmentsPerUser: "5", updateMask: "maximumEnvironmentsPerUser" });
    expect((await own.policies()).maximumEnvironmentsPerUser).toBe("5");
  });

  test("a path into a message that is replaced whole adds nothing", async () => {
    await own.set({ vetoExecPolicy: EVERYTHING.vetoExecPolicy });
    await own.set({ updateMask: "vetoExecPolicy.executables" });
    expect((await own.policies()).vetoExecPolicy.executables).toEqual(["socat"]);
    await own.set({ vetoExecPolicy: { enabled: true, executables: [] } });
    expect((await own.policies()).vetoExecPolicy.executables).toEqual([]);
  });

  test.each([
    ["organizationId", "organization_id"],
    ["updateMask", "update_mask"],
    ["nothing", "nothing"],
    ["agentPolicy.nothing", "agent_policy.nothing"],
    ["editorVersionRestrictions.code", "editor_version_restrictions.code"],
    ["securityAgentPolicy.customAgents.name", "security_agent_policy.custom_agents.name"],
    ["webBrowserDisabled.more", "web_browser_disabled.more"],
    ["allowedEditorIds,nothing", "nothing"],
    ["agentPolicy.", "agent_policy."],
  ])("the mask %s is refused, and nothing is changed", async (updateMask, path) => {
    await own.set({ allowedEditorIds: ["code"] });
    const answer = await own.update({ webBrowserDisabled: true, updateMask });
    expect([answer.status, answer.body.code, reasonOf(answer)]).toEqual([
      400,
      "invalid_argument",
      "FIELD_MASK_INVALID",
    ]);
    expect(answer.body.details[0].debug.metadata).toEqual({ path });
    expect(await own.policies()).toMatchObject({ allowedEditorIds: ["code"], webBrowserDisabled: false });
  });

  test("a mask of more than 64 paths is refused by the rules of the contract", async () => {
    const updateMask = Array.from({ length: 65 }, () => "allowedEditorIds").join();
    const answer = await own.update({ updateMask });
    expect([answer.status, reasonOf(answer)]).toEqual([400, "CONSTRAINT_VIOLATED"]);
    expect(answer.body.message).toContain("a field mask can have at most 64 paths");
  });

  test("over gRPC an empty list stays as it is, and a mask clears it", async () => {
    const client = createClient(OrganizationService, createGrpcTransport({ baseUrl: server.url }));
    const headers = { authorization: `Bearer ${own.administrator.token}` };
    const { organizationId } = own;
    await own.set(LISTS);
    await client.updateOrganizationPolicies({ organizationId, allowedEditorIds: [] }, { headers });
    expect((await own.policies()).allowedEditorIds).toEqual(["code"]);
    const updateMask = { paths: ["allowed_editor_ids", "agent_policy.command_deny_list"] };
    await client.updateOrganizationPolicies({ organizationId, updateMask }, { headers });
    const { allowedEditorIds, agentPolicy } = await own.policies();
    expect([allowedEditorIds, agentPolicy.commandDenyList]).toEqual([[], []]);
    const wrong = create(UpdateOrganizationPoliciesRequestSchema, {
      organizationId,
      updateMask: { paths: ["allowedEditorIds"] },
    });
    const error = await client.updateOrganizationPolicies(wrong, { headers }).then(
      () => undefined,
      (thrown) => ConnectError.from(thrown),
    );
    expect([error?.code, error?.rawMessage]).toEqual([
      Code.InvalidArgument,
      'the path "allowedEditorIds" of updateMask names no field of the request',
    ]);
  });
});

describe("the rules of the contract", () => {
  test.each<[object, string]>([
    [{ maximumEnvironmentTimeout: "1799s" }, "value must be 0s (no limit) or at least 1800s (30 minutes)"],
    [{ maximumEnvironmentTimeout: "-1s" }, "value must be 0s (no limit) or at least 1800s (30 minutes)"],
    [{ archiveEnvironmentsAfter: "86401s" }, "value must be a whole number of days"],
    [{ archiveEnvironmentsAfter: "0s" }, "must be greater than or equal to 86400s"],
    [{ archiveEnvironmentsAfter: "2678400s" }, "and less than or equal to 2592000s"],
    [{ deleteArchivedEnvironmentsAfter: "2419201s" }, "and less than or equal to 2419200s"],
    [{ maximumEnvironmentLifetime: "15552001s" }, "and less than or equal to 15552000s"],
    [{ maximumEnvironmentsPerUser: "-1" }, "must be greater than or equal to 0"],
    [{ maximumRunningEnvironmentsPerUser: -1 }, "must be greater than or equal to 0"],
    [{ agentPolicy: { maxSubagentsPerEnvironment: 11 } }, "and less than or equal to 10"],
    [{ agentPolicy: { maxSubagentsPerEnvironment: -1 } }, "must be greater than or equal to 0"],
    [{ allowedEditorIds: [""] }, "must be at least 1 character"],
    [{ securityPolicyId: "mine" }, "must be a valid UUID or empty [securityPolicyId]"],
    [{ defaultEnvironmentImage: "a b" }, "value must be the name of an image, such as registry.example.org/"],
  ])("refuse %j", async (policies, message) => {
    const answer = await own.update(policies);
    expect([answer.status, reasonOf(answer)]).toEqual([400, "CONSTRAINT_VIOLATED"]);
    expect(answer.body.message).toContain(message);
    expect(await own.policies()).toEqual({ organizationId: own.organizationId, ...DEFAULTS });
  });

  test.each([
    { maximumEnvironmentTimeout: "0s" },
    { maximumEnvironmentTimeout: "1800s" },
    { deleteArchivedEnvironmentsAfter: "0s" },
    { maximumEnvironmentLifetime: "0s" },
    { maximumEnvironmentsPerUser: "0" },
    { maximumRunningEnvironmentsPerUser: "9223372036854775807" },
  ])("take %j and answer it", async (policies) => {
    await own.set(policies);
    expect(await own.policies()).toMatchObject(policies);
  });
});

describe("the default editor", () => {
  const refusal = (id: string) => [
    400,
    "VALUE_UNUSABLE",
    `defaultEditorId must be one of allowedEditorIds: "${id}" is not among them`,
  ];
  const outcomeOf = (answer: Awaited<ReturnType<typeof own.update>>) => [
    answer.status,
    reasonOf(answer),
    answer.body.message,
  ];

  test("must be one of the allowed ones, whichever of the two is set", async () => {
    expect(outcomeOf(await own.update({ allowedEditorIds: ["code"], defaultEditorId: "vim" }))).toEqual(
      refusal("vim"),
    );
    await own.set({ allowedEditorIds: ["code", "vim"], defaultEditorId: "vim" });
    expect(outcomeOf(await own.update({ allowedEditorIds: ["code"] }))).toEqual(refusal("vim"));
    expect(outcomeOf(await own.update({ defaultEditorId: "emacs" }))).toEqual(refusal("emacs"));
    expect(await own.policies()).toMatchObject({ allowedEditorIds: ["code", "vim"], defaultEditorId: "vim" });
  });

  test("may be any while every editor is allowed, and none at any time", async () => {
    await own.set({ defaultEditorId: "emacs" });
    await own.set({ allowedEditorIds: ["code"], defaultEditorId: "" });
    expect(await own.policies()).toMatchObject({ allowedEditorIds: ["code"], defaultEditorId: "" });
  });
});

describe("what the server decides by itself", () => {
  test("the safelist is built in, sent with a veto policy only, and ignored in requests", async () => {
    await own.set({ vetoExecPolicy: { enabled: true, executables: ["sh"], safelist: ["socat"] } });
    const { vetoExecPolicy } = await own.policies();
    expect(vetoExecPolicy.executables).toEqual(["sh"]);
    expect(vetoExecPolicy.safelist).toEqual(expect.arrayContaining(["sh", "bash", "init", "sshd"]));
    expect(vetoExecPolicy.safelist).not.toContain("socat");
    await own.set({ vetoExecPolicy: { safelist: [] } });
    expect((await own.policies()).vetoExecPolicy.safelist).toEqual(vetoExecPolicy.safelist);
  });

  test("the deprecated admission level is answered as the one that replaces it", async () => {
    await own.set({ maxPortAdmissionLevel: "ADMISSION_LEVEL_OWNER_ONLY" });
    expect((await own.policies()).maxPortAdmissionLevel).toBe("ADMISSION_LEVEL_CREATOR_ONLY");
  });

  test("a secret is not found, as the server keeps none", async () => {
    const customerSecretId = "0190c0de-0000-7000-8000-000000000000";
    const answer = await own.update({ securityAgentPolicy: { endpointSecurity: { customerSecretId } } });
    expect([answer.status, answer.body.message]).toEqual([404, "secret not found"]);
  });
});

describe("archival", () => {
  const mark = (mark: string, run = runHostedCommand) =>
    run(["organization", "enterprise", own.organizationId, mark, "--data-dir", server.dataDir]);

  test("is only for organizations that the operator marked as enterprise, and ends with the mark", async () => {
    const archival = { archiveEnvironmentsAfter: "86400s" };
    const refused = await own.update(archival);
    expect([refused.status, refused.body.code, reasonOf(refused)]).toEqual([
      400,
      "failed_precondition",
      "NOT_ENTERPRISE",
    ]);
    expect(refused.body.details[0].debug.metadata).toEqual({ field: "archiveEnvironmentsAfter" });
    expect((await own.update({ updateMask: "archiveEnvironmentsAfter" })).status).toBe(200);
    const on = await mark("on", runCommand);
    expect([on.code, on.stdout]).toEqual([0, `policies-${made} is marked as enterprise\n`]);
    await own.set(archival);
    expect(await own.policies()).toMatchObject(archival);
    await own.set({ updateMask: "archiveEnvironmentsAfter" });
    expect((await own.policies()).archiveEnvironmentsAfter).toBeUndefined();
    await own.set(archival);
    expect((await mark("off")).stdout).toBe(`policies-${made} is not marked as enterprise\n`);
    expect((await own.policies()).archiveEnvironmentsAfter).toBeUndefined();
    expect(reasonOf(await own.update(archival))).toBe("NOT_ENTERPRISE");
  });

  test("the mark is set on an organization that there is, with on or off", async () => {
    expect((await mark("perhaps")).code).toBe(1);
    const none = await runHostedCommand([
      "organization",
      "enterprise",
      "nobody",
      "on",
      "--data-dir",
      server.dataDir,
    ]);
    expect([none.code, none.stderr]).toEqual([1, "chartroom: no organization has the id or name nobody\n"]);
  });
});

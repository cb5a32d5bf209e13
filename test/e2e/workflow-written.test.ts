import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { builderOf } from "../../src/store/query-builder.ts";
import { OPERATOR } from "../../src/store/store.ts";
import { repository } from "../harness/call.ts";
import { expectRefused, ok } from "../harness/host-token.ts";
import { withServerData } from "../harness/member.ts";
import { addOrganization } from "../harness/organization.ts";
import { decisionOf, type OrganizationWithPolicies, organizationWithPolicies } from "../harness/policies.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { ACTION, MANUAL, type WorkflowCalls, workflowCalls } from "../harness/workflow.ts";

let server: ReachableServer;
let own: OrganizationWithPolicies;
/** As the administrator of `own`, unless the token of a member is given. */
let workflows: WorkflowCalls;
let strangers: WorkflowCalls;
beforeAll(async () => {
  server = await startHostedServer();
  own = await organizationWithPolicies(server, "harbour");
  workflows = workflowCalls({ url: server.url, token: own.administrator.token });
  strangers = workflowCalls({ url: server.url, token: (await addOrganization(server, "island")).token });
});
afterAll(stopAll);

const over = (context: object, trigger: object = { manual: {} }) => ({ triggers: [{ ...trigger, context }] });
const step = (each: object) => ({ action: { ...ACTION, steps: [each] } });
const repositories = (...repoUrls: string[]) => over({ repositories: { repositoryUrls: { repoUrls } } });
const output = (more: object) =>
  step({ report: { outputs: [{ title: "Lines", key: "lines", command: "wc -l", integer: {}, ...more }] } });

describe("what could not be run is refused when it is written", () => {
  test.each<[string, object, RegExp]>([
    [
      "a cron expression that does not parse",
      over(MANUAL.context, { time: { cronExpression: "61 * * * *" } }),
      /"61" is no minute/,
    ],
    [
      "one that never comes due",
      over(MANUAL.context, { time: { cronExpression: "0 0 30 2 *" } }),
      /never comes due/,
    ],
    [
      "a context from the event of a manual trigger",
      over({ fromTrigger: {} }),
      /use it in a pullRequest trigger/,
    ],
    [
      "one of a time trigger",
      over({ fromTrigger: {} }, { time: { cronExpression: "* * * * *" } }),
      /use it in a pullRequest trigger/,
    ],
    ["a webhook", over(MANUAL.context, { pullRequest: { webhookId: v7() } }), /no webhook resources/],
    [
      "an integration",
      over(MANUAL.context, { pullRequest: { integrationId: v7() } }),
      /no integration resources/,
    ],
    [
      "a repository on the server's own disk",
      repositories("https://git.example.org/a", "/etc"),
      /https, http, ssh or file/,
    ],
    ["a transport that runs a program", repositories("ext::sh"), /https, http, ssh or file/],
    [
      "an acceptance criterion that does not compile",
      output({ acceptanceCriteria: "this >" }),
      /does not parse/,
    ],
    ["one that is no condition", output({ acceptanceCriteria: "this + 1" }), /gives int, not bool/],
    ["one over another type", output({ acceptanceCriteria: "this == 'x'" }), /needs/],
    ["a pattern that is none", output({ integer: undefined, string: { pattern: "(" } }), /RE2/],
    ["bounds that nothing fits", output({ integer: { min: 2, max: 1 } }), /min 2 is more than max 1/],
    [
      "a malformed parameter expression",
      step({ task: { command: "echo {{ .Parameters.a-b }}" } }),
      /malformed/,
    ],
    [
      "one in a quoted here-document",
      step({ task: { command: "cat <<'E'\n{{ .Parameters.a }}\nE\n" } }),
      /cannot carry/,
    ],
    ["one where none is allowed", { description: "{{ .Parameters.a }}" }, /is allowed only in/],
    [
      "a branch that git does not take",
      step({ pullRequest: { title: "x", branch: "a b" } }),
      /git allows no branch/,
    ],
    [
      "a report that opens a pull request",
      { report: { ...ACTION, steps: [{ pullRequest: { title: "x", branch: "x" } }] } },
      /open pull requests in the action/,
    ],
  ])("%s", async (_, body, message) => {
    await workflows.refuses(body, 400, "VALUE_UNUSABLE", message);
  });

  test("and nothing of the same request is stored", async () => {
    const before = await workflows.created();
    const body = { name: "x", ...repositories("/etc") };
    expectRefused(await workflows.update(before.id, body), 400, "VALUE_UNUSABLE");
    expect((await ok(workflows.get(before.id))).workflow).toEqual(before);
  });

  test("and what can be run is taken", async () => {
    const workflow = await workflows.created({
      parameters: [
        { key: "what", description: "", defaultValue: "a typo" },
        { key: "flag", description: "of docker ps", defaultValue: "" },
      ],
      triggers: [
        {
          time: { cronExpression: "*/5 9-17 * * 1-5" },
          context: { agent: { prompt: "look at {{ .Parameters.what }}" } },
        },
        { pullRequest: { events: ["PULL_REQUEST_EVENT_OPENED"] }, context: { fromTrigger: {} } },
        {
          manual: {},
          context: {
            repositories: { repoSelector: { repoSearchString: "topic:x", scmHost: "git.example.org" } },
          },
        },
        ...repositories("git@git.example.org:a/b.git", "file:///srv/git/a.git").triggers,
      ],
      action: {
        ...ACTION,
        steps: [
          { task: { command: "docker ps --format '{{.ID}}' {{.Parameters.flag}}" } },
          { agent: { prompt: "fix {{ .Parameters.what }}" } },
          {
            pullRequest: {
              title: "{{ .Parameters.what }}",
              branch: "fix/{{ .Parameters.flag }}x",
              draft: true,
            },
          },
          ...output({ acceptanceCriteria: "this >= 0 && this < 1000" }).action.steps,
        ],
      },
      report: { ...ACTION, steps: [{ task: { command: "true" } }, { agent: { prompt: "sum it up" } }] },
    });
    // An instant may pass between the two answers.
    const again = { ...workflow, nextInstants: [{ triggerIndex: 0, instants: expect.any(Array) }] };
    expect((await ok(workflows.get(workflow.id))).workflow).toEqual(again);
  });
});

describe("what a context names", () => {
  const initializer = repository("https://git.example.org/team/hello.git");
  const project = async (calls: WorkflowCalls): Promise<string> =>
    (await ok(calls.call("ProjectService/CreateProject", { name: "Hello", initializer }))).project.id;
  const projects = (...projectIds: string[]) => over({ projects: { projectIds } });
  const inClass = (environmentClassId: string) =>
    over({ repositories: { repositoryUrls: { repoUrls: ["h:a"] }, environmentClassId } });
  const environmentClass = async (calls: WorkflowCalls): Promise<string> => {
    const { runner } = await ok(calls.call("RunnerService/CreateRunner", { name: "In the attic" }));
    const body = { runnerId: runner.runnerId, displayName: "Small", description: "a machine" };
    return (await ok(calls.call("RunnerConfigurationService/CreateEnvironmentClass", body))).id;
  };

  test("are projects of the organization, each of them", async () => {
    const [one, other, theirs] = [
      await project(workflows),
      await project(workflows),
      await project(strangers),
    ];
    await workflows.created(projects(one, other, one));
    await workflows.created(projects());
    for (const id of [theirs, v7()]) {
      await workflows.refuses(projects(one, id), 404, "NOT_FOUND", /^project not found$/);
    }
  });

  test("is no project that is pending deletion; a workflow that has one can still be changed", async () => {
    const projectId = await project(workflows);
    const { id } = await workflows.created(projects(projectId));
    const initialized = { projectId, spec: { machine: {} } };
    // Keeps the project from being removed at once.
    await ok(workflows.call("EnvironmentService/CreateEnvironmentFromProject", initialized));
    await ok(workflows.call("ProjectService/DeleteProject", { projectId }));
    await workflows.refuses(
      projects(projectId),
      400,
      "PENDING_DELETION",
      /^the project is pending deletion$/,
    );
    await workflows.updated(id, { disabled: true });
  });

  test("are environment classes of the organization that take environments", async () => {
    const [classId, theirs] = [await environmentClass(workflows), await environmentClass(strangers)];
    await workflows.created(inClass(classId));
    for (const id of [theirs, v7()]) {
      await workflows.refuses(inClass(id), 404, "NOT_FOUND", /^environment class not found$/);
    }
    const disable = { environmentClassId: classId, enabled: false };
    await ok(workflows.call("RunnerConfigurationService/UpdateEnvironmentClass", disable));
    await workflows.refuses(inClass(classId), 400, "PHASE_UNSUITABLE", /is disabled/);
  });
});

describe("the executor", () => {
  const user = (id: string) => ({ id, principal: "PRINCIPAL_USER" });
  const robot = (id: string) => ({ id, principal: "PRINCIPAL_SERVICE_ACCOUNT" });
  const serviceAccount = async (calls = workflows): Promise<string> => {
    const body = { name: "Robot", validUntil: "2999-12-31T00:00:00Z" };
    return (await ok(calls.call("ServiceAccountService/CreateServiceAccount", body))).serviceAccount.id;
  };

  test("is the caller, named or not, or a service account of the organization", async () => {
    const { administrator, member } = own;
    const id = await serviceAccount();
    for (const [token, self] of [
      [administrator.token, administrator.userId],
      [member.token, member.userId],
    ] as const) {
      for (const executor of [undefined, {}, user(self)]) {
        expect((await workflows.created({ executor }, token)).metadata.executor).toEqual(user(self));
      }
      const workflow = await workflows.created({ executor: robot(id) }, token);
      expect([workflow.metadata.creator, workflow.metadata.executor]).toEqual([user(self), robot(id)]);
      expect((await workflows.updated(workflow.id, { executor: {} }, token)).metadata.executor).toEqual(
        user(self),
      );
      expect(
        (await workflows.updated(workflow.id, { executor: robot(id) }, token)).metadata.executor,
      ).toEqual(robot(id));
    }
  });

  test("is nobody else", async () => {
    const { member } = own;
    for (const executor of [
      user(member.userId),
      user(v7()),
      robot(""),
      { id: own.administrator.userId },
      { id: own.administrator.userId, principal: "PRINCIPAL_ACCOUNT" },
      { id: v7(), principal: "PRINCIPAL_RUNNER" },
    ]) {
      await workflows.refuses(
        { executor },
        400,
        "VALUE_UNUSABLE",
        /runs as the caller or as a service account/,
      );
    }
    for (const id of [await serviceAccount(strangers), v7()]) {
      await workflows.refuses({ executor: robot(id) }, 404, "NOT_FOUND", /^service account not found$/);
    }
  });

  test("is no service account that is suspended or has ended; one that became so meanwhile stays", async () => {
    const [suspended, ended] = [await serviceAccount(), await serviceAccount()];
    const { id } = await workflows.created({ executor: robot(suspended) });
    await withServerData(server, (store) =>
      store.write(OPERATOR, "test", async ({ db, now }) => {
        await builderOf(db)
          .updateTable("service_account")
          .set({ suspended: 1 })
          .where("id", "=", suspended)
          .execute();
        await builderOf(db)
          .updateTable("service_account")
          .set({ valid_until: now })
          .where("id", "=", ended)
          .execute();
      }),
    );
    for (const each of [suspended, ended]) {
      await workflows.refuses({ executor: robot(each) }, 400, "EXECUTOR_UNFIT", /choose another executor/);
    }
    await workflows.updated(id, { name: "x", executor: robot(suspended) });
  });

  test("stays the creator when an administrator changes the workflow, and goes back to it", async () => {
    const { member } = own;
    const { id } = await workflows.created({}, member.token);
    const kept = await workflows.updated(id, { name: "x", executor: user(member.userId) });
    expect(kept.metadata.executor).toEqual(user(member.userId));
    const taken = await workflows.updated(id, { executor: user(own.administrator.userId) });
    expect(taken.metadata.executor).toEqual(user(own.administrator.userId));
    expect((await workflows.updated(id, { executor: {} })).metadata.executor).toEqual(user(member.userId));
  });

  test("that is another person keeps the creator from changing what is done in its name", async () => {
    const { member } = own;
    const { id } = await workflows.created({}, member.token);
    await workflows.updated(id, { executor: user(own.administrator.userId) });
    const body = step({ task: { command: "cat ~/.netrc" } });
    expectRefused(
      await workflows.update(id, body, member.token),
      403,
      "PERMISSION_DENIED",
      /runs as another person/,
    );
    expectRefused(
      await workflows.update(id, { ...body, executor: user(own.administrator.userId) }, member.token),
      403,
      "PERMISSION_DENIED",
    );
    await workflows.updated(id, { name: "x", disabled: true }, member.token);
    const taken = await workflows.updated(id, { ...body, executor: user(member.userId) }, member.token);
    expect(taken.metadata.executor).toEqual(user(member.userId));
  });
});

describe("the agent policy", () => {
  afterAll(() => own.set({ updateMask: "agentPolicy", disableFromScratch: false }));
  const refusedBy = async (fieldPath: string, body: object, token?: string) => {
    const answer = await workflows.create(body, token);
    expectRefused(answer, 400, "POLICY_DENIED");
    const { id } = await workflows.created({}, token);
    const decision = decisionOf(await workflows.update(id, body, token));
    expect([decisionOf(answer).fieldPath, decision.fieldPath]).toEqual([fieldPath, fieldPath]);
    return decision;
  };

  test("allows the agents of its list", async () => {
    const [one, other] = [v7(), v7()];
    await workflows.created({ agentId: other });
    await own.set({ agentPolicy: { allowedAgentIds: [one] } });
    const { id } = await workflows.created({ agentId: one });
    await workflows.updated(id, { agentId: "" });
    const decision = await refusedBy("agentPolicy.allowedAgentIds", { agentId: other });
    expect([decision.valueAsked, decision.allowed]).toEqual([
      JSON.stringify(other),
      `only the agents ${one}`,
    ]);
    await own.set({ agentPolicy: { allowedAgentIds: [] } });
    await workflows.updated(id, { agentId: other });
  });

  test.each<[string, object, object, object]>([
    [
      "agentPolicy.allowedExtAgentReasoningEfforts",
      { allowedExtAgentReasoningEfforts: ["EXT_AGENT_REASONING_EFFORT_LOW"] },
      { reasoningEffort: "EXT_AGENT_REASONING_EFFORT_LOW" },
      { reasoningEffort: "EXT_AGENT_REASONING_EFFORT_ULTRA" },
    ],
    [
      "agentPolicy.allowedExtAgentServiceTiers",
      { allowedExtAgentServiceTiers: ["EXT_AGENT_SERVICE_TIER_UNSPECIFIED"] },
      { model: "EXT_AGENT_MODEL_2" },
      { serviceTier: "EXT_AGENT_SERVICE_TIER_FAST" },
    ],
    [
      "agentPolicy.extAgentModelPolicy",
      {
        extAgentModelPolicy: { modelStates: { EXT_AGENT_MODEL_2: "EXT_AGENT_MODEL_POLICY_STATE_DISABLED" } },
      },
      { model: "EXT_AGENT_MODEL_1" },
      { model: "EXT_AGENT_MODEL_2" },
    ],
  ])("%s binds the settings", async (fieldPath, agentPolicy, allowed, refused) => {
    const present = await workflows.created({ extAgentSettings: refused });
    await own.set({ agentPolicy });
    await workflows.created({ extAgentSettings: allowed });
    await refusedBy(fieldPath, { extAgentSettings: refused });
    // What was written before stays until it is written again.
    expect((await workflows.updated(present.id, { name: "x" })).spec.extAgentSettings).toMatchObject(refused);
    await own.set({ updateMask: fieldPath });
  });

  test("disableFromScratch keeps members from contexts without code", async () => {
    await own.set({ disableFromScratch: true });
    const body = { triggers: [MANUAL] };
    await refusedBy("disableFromScratch", body, own.member.token);
    await workflows.created(repositories("h:a"), own.member.token);
    await workflows.created(body);
  });
});

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { type Answer, post, reasonOf, repository } from "../harness/call.ts";
import { registerRunner, succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import {
  type AgentFixture,
  createAgentFixture,
  startLeasedAgentExecution,
} from "../harness/leased-agent-execution.ts";
import { decisionOf } from "../harness/policies.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";

let server: ReachableServer;
let home: AgentFixture;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
});
beforeEach(async () => {
  home = await createAgentFixture(server);
});
afterAll(stopAll);

const start = (request: object = {}, token = home.token) =>
  post(server, "AgentService/StartAgent", request, token);
const started = async (request: object = {}, token = home.token): Promise<string> =>
  (await succeeded(start(request, token))).agentExecutionId;

describe("a policy", () => {
  const denial = (answer: Answer) => [
    answer.status,
    answer.body.code,
    reasonOf(answer),
    decisionOf(answer)?.fieldPath,
  ];
  const deniedBy = (fieldPath: string) => [400, "failed_precondition", "POLICY_DENIED", fieldPath];
  const contextUrl = { url: "https://git.example.org/team/hello" };

  test.each<[string, object, object, object]>([
    ["agentPolicy.allowedAgentIds", { agentPolicy: { allowedAgentIds: [v7()] } }, { named: true }, {}],
    [
      "agentPolicy.allowedExtAgentReasoningEfforts",
      { agentPolicy: { allowedExtAgentReasoningEfforts: ["EXT_AGENT_REASONING_EFFORT_LOW"] } },
      { extAgentSettings: { reasoningEffort: "EXT_AGENT_REASONING_EFFORT_MAX" } },
      { extAgentSettings: { reasoningEffort: "EXT_AGENT_REASONING_EFFORT_LOW" } },
    ],
    [
      "agentPolicy.allowedExtAgentServiceTiers",
      { agentPolicy: { allowedExtAgentServiceTiers: ["EXT_AGENT_SERVICE_TIER_UNSPECIFIED"] } },
      { extAgentSettings: { serviceTier: "EXT_AGENT_SERVICE_TIER_FAST" } },
      { extAgentSettings: {} },
    ],
    [
      "agentPolicy.extAgentModelPolicy",
      {
        agentPolicy: {
          extAgentModelPolicy: {
            modelStates: { EXT_AGENT_MODEL_1: "EXT_AGENT_MODEL_POLICY_STATE_DISABLED" },
          },
        },
      },
      { extAgentSettings: { model: "EXT_AGENT_MODEL_1" } },
      { extAgentSettings: { model: "EXT_AGENT_MODEL_2" } },
    ],
    [
      "agentPolicy.goalModeDisabled",
      { agentPolicy: { goalModeDisabled: true } },
      { mode: "AGENT_MODE_GOAL" },
      { mode: "AGENT_MODE_RALPH" },
    ],
    [
      "agentPolicy.goalModeDisabled",
      { agentPolicy: { goalModeDisabled: true } },
      { turnOptions: { modes: ["AGENT_MODE_SPEC", "AGENT_MODE_GOAL"] } },
      { turnOptions: { modes: ["AGENT_MODE_SPEC"] } },
    ],
    ["maximumEnvironmentsPerUser", { maximumEnvironmentsPerUser: "1" }, {}, {}],
  ])(
    "%s refuses what it forbids, also to administrators, and leaves no environment behind",
    async (path, policies, bad, good) => {
      await home.set(policies);
      const isNamed = "named" in bad;
      if (path === "maximumEnvironmentsPerUser") await started(good);
      const count = async () =>
        (await succeeded(home.call("EnvironmentService/ListEnvironments", {}))).environments.length;
      const before = await count();
      expect(denial(await start(isNamed ? { agentId: home.agentId } : bad))).toEqual(deniedBy(path));
      expect(await count()).toBe(before);
      if (path !== "maximumEnvironmentsPerUser") await started(good);
    },
  );

  test("disableFromScratch keeps members from empty environments", async () => {
    await home.set({ disableFromScratch: true });
    const { token } = home.member;
    expect(denial(await start({}, token))).toEqual(deniedBy("disableFromScratch"));
    expect(denial(await start({ codeContext: { pullRequest: { id: "7" } } }, token))).toEqual(
      deniedBy("disableFromScratch"),
    );
    await started({ codeContext: { contextUrl } }, token);
    await started();
  });

  test("membersRequireProjects keeps members to projects", async () => {
    await home.set({ membersRequireProjects: true });
    const { token } = home.member;
    expect(denial(await start({ codeContext: { contextUrl } }, token))).toEqual(
      deniedBy("membersRequireProjects"),
    );
    const initializer = repository("https://git.example.org/team/hello.git");
    const made = await succeeded(home.call("ProjectService/CreateProject", { name: "Hello", initializer }));
    await started({ codeContext: { projectId: made.project.id } }, token);
  });

  test("allowLocalRunners keeps runs off local runners, also in an environment elsewhere", async () => {
    const local = await registerRunner(server, { token: home.token, name: "on my desk", local: true });
    const { environmentId } = await startLeasedAgentExecution(home);
    await home.set({ allowLocalRunners: false });
    for (const codeContext of [{}, { environmentId }]) {
      const answer = await start({ codeContext, runnerId: local.runnerId });
      expect(denial(answer)).toEqual(deniedBy("allowLocalRunners"));
    }
  });

  test("of the settings holds although the agent takes none", async () => {
    home = await createAgentFixture(server, { takesSettings: false });
    await home.set({ agentPolicy: { allowedExtAgentReasoningEfforts: ["EXT_AGENT_REASONING_EFFORT_LOW"] } });
    const extAgentSettings = { reasoningEffort: "EXT_AGENT_REASONING_EFFORT_MAX" };
    expect(denial(await start({ extAgentSettings }))).toEqual(
      deniedBy("agentPolicy.allowedExtAgentReasoningEfforts"),
    );
  });
});

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { AgentMode } from "#gen/service/v1/agent_pb.js";
import { type Answer, post, reasonOf, repository } from "../harness/call.ts";
import { registerRunner, succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import {
  type AgentFixture,
  createAgentFixture,
  leaseAgentExecution,
  startLeasedAgentExecution,
} from "../harness/leased-agent-execution.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";

type Body = Answer["body"];

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
const get = (agentExecutionId: string, token = home.token) =>
  post(server, "AgentService/GetAgentExecution", { agentExecutionId }, token);
const run = async (id: string): Promise<Body> => (await succeeded(get(id))).agentExecution;
/** The environment that a run works in. */
const environmentOf = async (id: string): Promise<Body> => {
  const [{ environmentId, createdByAgent }] = (await run(id)).status.usedEnvironments;
  const { environment } = await succeeded(home.call("EnvironmentService/GetEnvironment", { environmentId }));
  return { ...environment, createdByAgent };
};
const project = async (classes: readonly string[]): Promise<string> => {
  const initializer = repository("https://git.example.org/team/hello.git");
  const made = await succeeded(home.call("ProjectService/CreateProject", { name: "Hello", initializer }));
  if (classes.length === 0) return made.project.id;
  const projectEnvironmentClasses = classes.map((environmentClassId, order) => ({
    environmentClassId,
    order,
  }));
  const projectId = made.project.id;
  const entries = { projectId, projectEnvironmentClasses };
  await succeeded(home.call("ProjectService/UpdateProjectEnvironmentClasses", entries));
  return projectId;
};
const refusal = (answer: Answer) => [answer.status, answer.body.code, reasonOf(answer)];

describe("StartAgent", () => {
  test("without any code makes an empty environment", async () => {
    const id = await started();
    const { spec, metadata, createdByAgent } = await environmentOf(id);
    expect([spec.content, metadata.projectId, createdByAgent]).toEqual([undefined, "", true]);
    expect(await run(id)).toMatchObject({
      metadata: { role: "AGENT_EXECUTION_ROLE_DEFAULT", sessionId: metadata.sessionId },
      spec: { agentId: home.agentId, desiredPhase: "PHASE_RUNNING" },
      status: { phase: "PHASE_PENDING", mode: "AGENT_MODE_EXECUTION" },
    });
  });

  test("on a project makes an environment of it", async () => {
    const projectId = await project([home.runner.environmentClassId]);
    const id = await started({ codeContext: { projectId } });
    const { spec, metadata } = await environmentOf(id);
    expect(metadata).toMatchObject({ projectId, runnerId: home.runner.runnerId });
    expect(spec.machine.class).toBe(home.runner.environmentClassId);
    expect(spec.content.initializer.specs[0].git.remoteUri).toBe("https://git.example.org/team/hello.git");
  });

  test("on a URL makes an environment of it, in the class that is named", async () => {
    const contextUrl = {
      url: "https://git.example.org/team/hello/pull/7",
      environmentClassId: home.runner.environmentClassId,
    };
    const { spec, metadata } = await environmentOf(await started({ codeContext: { contextUrl } }));
    expect(spec.content.initializer.specs).toEqual([{ contextUrl: { url: contextUrl.url } }]);
    expect([spec.machine.class, metadata.originalContextUrl, metadata.runnerId]).toEqual([
      contextUrl.environmentClassId,
      contextUrl.url,
      home.runner.runnerId,
    ]);
  });

  test("in an environment that is there uses it, and starts it when it is stopped", async () => {
    const spec = {
      desiredPhase: "ENVIRONMENT_PHASE_STOPPED",
      machine: { class: home.runner.environmentClassId },
    };
    const { environment } = await succeeded(home.call("EnvironmentService/CreateEnvironment", { spec }));
    const id = await started({ codeContext: { environmentId: environment.id } });
    expect(await environmentOf(id)).toMatchObject({
      id: environment.id,
      createdByAgent: false,
      spec: { desiredPhase: "ENVIRONMENT_PHASE_RUNNING" },
    });
  });

  test("keeps what the work is about, with code or without", async () => {
    const pullRequest = { id: "7", title: "Say hello", url: "https://git.example.org/team/hello/pull/7" };
    const projectId = await project([]);
    const { environment } = await succeeded(home.call("EnvironmentService/CreateEnvironment", {}));
    for (const context of [
      {},
      { projectId },
      { environmentId: environment.id },
      { contextUrl: { url: "https://git.example.org/team/hello" } },
    ]) {
      const codeContext = { ...context, pullRequest };
      const { spec } = await run(await started({ codeContext }));
      expect(spec.codeContext).toMatchObject(codeContext);
    }
  });

  test("hands the runner the run with its command, and what only runners can keep", async () => {
    const { organizationId } = home;
    const made = await succeeded(home.call("GroupService/CreateGroup", { organizationId, name: "Others" }));
    const others = made.group;
    await home.set({
      agentPolicy: { commandDenyList: ["rm"], mcpDisabled: true, scmToolsAllowedGroupId: others.id },
    });
    const { work } = await startLeasedAgentExecution(home, {
      name: "Fix the build",
      mode: "AGENT_MODE_SPEC",
    });
    expect(work.agent).toMatchObject({
      agentExecution: { metadata: { name: "Fix the build" }, status: { mode: "AGENT_MODE_SPEC" } },
      environment: { status: { phase: "ENVIRONMENT_PHASE_RUNNING" } },
      command: ["coder", "--lines"],
      form: "AGENT_FORM_JSON_LINES",
    });
    expect(work.environmentToken).toMatch(/^cr_env_/);
    expect(work.policies.agentPolicy).toMatchObject({
      commandDenyList: ["rm"],
      mcpDisabled: true,
      scmToolsDisabled: true,
    });
  });

  test("keeps the settings for an agent that takes them, and for no other", async () => {
    const extAgentSettings = {
      model: "EXT_AGENT_MODEL_2",
      reasoningEffort: "EXT_AGENT_REASONING_EFFORT_LOW",
      serviceTier: "EXT_AGENT_SERVICE_TIER_FAST",
    };
    const taken = await run(await started({ extAgentSettings }));
    expect([taken.spec.extAgentSettings, taken.status.extAgentSettings]).toEqual([
      extAgentSettings,
      extAgentSettings,
    ]);
    home = await createAgentFixture(server, { takesSettings: false });
    const { spec, status } = await run(await started({ extAgentSettings }));
    expect([spec.extAgentSettings, status.extAgentSettings]).toEqual([undefined, undefined]);
  });

  test("keeps no options of the first turn with the run", async () => {
    const answered = JSON.stringify(
      await run(await started({ turnOptions: { modes: ["AGENT_MODE_RALPH"] } })),
    );
    expect(answered).not.toContain("RALPH");
  });

  test("joins a session of the organization, and no other", async () => {
    const first = await run(await started());
    const { sessionId } = first.metadata;
    const second = await run(await started({ sessionId: sessionId.toUpperCase() }));
    expect(second.metadata.sessionId).toBe(sessionId);
    expect((await environmentOf(second.id)).metadata.sessionId).toBe(sessionId);
    const other = await createAgentFixture(server);
    for (const [id, token] of [
      [v7(), home.token],
      [sessionId, other.token],
    ]) {
      const answer = await start({ sessionId: id }, token);
      expect([...refusal(answer), answer.body.message]).toEqual([
        404,
        "not_found",
        "NOT_FOUND",
        "session not found",
      ]);
    }
  });

  test("makes one run of one idempotency key", async () => {
    const keyed = () =>
      post(server, "AgentService/StartAgent", { name: "Once" }, home.token, { "idempotency-key": "k" });
    const [one, two] = await Promise.all([keyed(), keyed()]);
    expect(one.body).toEqual(two.body);
    const { agentExecutions } = await succeeded(home.call("AgentService/ListAgentExecutions", {}));
    expect(agentExecutions).toHaveLength(1);
  });

  test("without a key makes a run for each call", async () => {
    const ids = await Promise.all([started(), started()]);
    expect(new Set(ids).size).toBe(2);
  });
});

describe("the first message of a new run", () => {
  const inputsOf = async (agentExecutionId: string) =>
    (await succeeded(home.call("AgentService/ListAgentInputs", { agentExecutionId }))).inputs;
  const words = (content: string) => ({ inputs: [{ text: { content } }] });

  test("is queued with it, and delivered with the options of the first turn", async () => {
    const turnOptions = { modes: ["AGENT_MODE_PLANNING"] };
    const userInput = { id: "first", ...words("begin") };
    const leased = await startLeasedAgentExecution(home, { userInput, turnOptions });
    expect(await inputsOf(leased.id)).toMatchObject([
      { id: "first", receipt: "AGENT_INPUT_RECEIPT_QUEUED", sender: { principal: "PRINCIPAL_USER" } },
    ]);
    await leased.say("first", "again");
    expect(await inputsOf(leased.id)).toHaveLength(1);
    const [delivery] = await leased.inputs().until(1);
    expect(delivery).toMatchObject({
      input: { id: "first", input: { value: { inputs: [{ input: { value: { content: "begin" } } }] } } },
      turnOptions: { modes: [AgentMode.PLANNING] },
    });
  });

  test("is given an id where it has none", async () => {
    const [input] = await inputsOf(await started({ userInput: words("begin") }));
    expect(input.id).toMatch(/^[0-9a-f-]{36}$/);
  });

  test.each([
    ["a text that hides something", words("a\u202eb"), "TEXT_DECEPTIVE"],
    ["no part", { id: "empty" }, "CONSTRAINT_VIOLATED"],
    ["an image of another type", { image: { data: "AAAA", mimeType: "image/png" } }, "VALUE_UNUSABLE"],
  ])("with %s is refused, and there is no run", async (_, userInput, reason) => {
    expect(reasonOf(await start({ userInput }))).toBe(reason);
    const { agentExecutions } = await succeeded(home.call("AgentService/ListAgentExecutions", {}));
    expect(agentExecutions).toEqual([]);
  });
});

describe("what StartAgent names", () => {
  test("must be there", async () => {
    const cases: [object, string][] = [
      [{ agentId: v7() }, "agent"],
      [{ runnerId: v7() }, "runner"],
      [{ workflowActionId: v7() }, "workflow execution action"],
      [{ codeContext: { projectId: v7() } }, "project"],
      [{ codeContext: { environmentId: v7() } }, "environment"],
      [
        { codeContext: { contextUrl: { url: "https://git.example.org/a", environmentClassId: v7() } } },
        "environment class",
      ],
    ];
    for (const [request, resource] of cases) {
      const answer = await start(request);
      expect([...refusal(answer), answer.body.message]).toEqual([
        404,
        "not_found",
        "NOT_FOUND",
        `${resource} not found`,
      ]);
    }
    const { agentExecutions } = await succeeded(home.call("AgentService/ListAgentExecutions", {}));
    const { environments } = await succeeded(home.call("EnvironmentService/ListEnvironments", {}));
    expect([agentExecutions, environments]).toEqual([[], []]);
  });

  test("must not be pending deletion", async () => {
    const projectId = await project([]);
    // An environment of it, so that its removal has something to wait for.
    const spec = { machine: { class: home.runner.environmentClassId } };
    await succeeded(home.call("EnvironmentService/CreateEnvironmentFromProject", { projectId, spec }));
    await succeeded(home.call("ProjectService/DeleteProject", { projectId }));
    const { environment } = await succeeded(home.call("EnvironmentService/CreateEnvironment", { spec }));
    await home.runner.lease({ maxLeases: 2 });
    await succeeded(home.call("EnvironmentService/DeleteEnvironment", { environmentId: environment.id }));
    for (const codeContext of [{ projectId }, { environmentId: environment.id }]) {
      expect(refusal(await start({ codeContext }))).toEqual([400, "failed_precondition", "PENDING_DELETION"]);
    }
  });

  test("is an environment that the caller could start", async () => {
    const spec = { machine: { class: home.runner.environmentClassId } };
    const { environment } = await succeeded(home.call("EnvironmentService/CreateEnvironment", { spec }));
    const codeContext = { environmentId: environment.id };
    const denied = await start({ codeContext }, home.member.token);
    expect([...refusal(denied), denied.body.details[0].debug.metadata.permission]).toEqual([
      403,
      "permission_denied",
      "PERMISSION_DENIED",
      "start_environment",
    ]);
    const theirs = await home.call("EnvironmentService/CreateEnvironment", { spec }, home.member.token);
    const context = { environmentId: theirs.body.environment.id };
    await started({ codeContext: context }, home.member.token);
    await started({ codeContext: context });
  });

  test("is a default of the organization, or there must be one", async () => {
    const bare = await post(server, "AgentService/StartAgent", {});
    expect([...refusal(bare), bare.body.message]).toEqual([
      400,
      "failed_precondition",
      "AGENT_MISSING",
      expect.stringMatching(/^no agent is named and none is configured/),
    ]);
    expect((await run(await started())).spec.agentId).toBe(home.agentId);
  });
});

describe("a run that is routed", () => {
  test("has its environment made on that runner, in a class of its own", async () => {
    const south = await registerRunner(server, { token: home.token, name: "south" });
    const projectId = await project([home.runner.environmentClassId, south.environmentClassId]);
    const { spec, metadata } = await environmentOf(
      await started({ codeContext: { projectId }, runnerId: south.runnerId }),
    );
    expect([metadata.runnerId, spec.machine.class]).toEqual([south.runnerId, south.environmentClassId]);
    const elsewhere = await project([home.runner.environmentClassId]);
    const bare = await environmentOf(
      await started({ codeContext: { projectId: elsewhere }, runnerId: south.runnerId }),
    );
    expect([bare.metadata.runnerId, bare.spec.machine]).toEqual([south.runnerId, undefined]);
  });

  test("does not go to a class of another runner", async () => {
    const south = await registerRunner(server, { token: home.token, name: "south" });
    const contextUrl = {
      url: "https://git.example.org/a",
      environmentClassId: home.runner.environmentClassId,
    };
    const answer = await start({ codeContext: { contextUrl }, runnerId: south.runnerId });
    expect([...refusal(answer), answer.body.message]).toEqual([
      400,
      "invalid_argument",
      "VALUE_UNUSABLE",
      "the environment class is of another runner: name that one, or neither",
    ]);
  });

  test("goes there, although another runner has its environment", async () => {
    const south = await registerRunner(server, { token: home.token, name: "south" });
    const { environmentId } = await startLeasedAgentExecution(home);
    const routed = { name: "Routed", codeContext: { environmentId }, runnerId: south.runnerId };
    const id = await started(routed);
    expect(await home.runner.lease({ kinds: ["WORK_KIND_AGENT"] })).toEqual([]);
    expect((await leaseAgentExecution(south, id)).agent.agentExecution.metadata.name).toBe("Routed");
    // The runner that has the run reads it, and the one that has the environment does not.
    expect((await get(id, south.token)).status).toBe(200);
    expect(refusal(await get(id, home.runner.token))).toEqual([404, "not_found", "NOT_FOUND"]);
  });
});
